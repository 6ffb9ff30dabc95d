import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { drainingUnits, isAdaptive, storingUnits } from '../../api/adaptive';
import { reportOf } from '../../api/figures';
import { unitsChart } from '../../charts/series';
import { Decisions } from './Decisions';

const decision = {
  stage: 1, plan: 1, batch: 12, at_us: 1_767_225_600_000_000, side: 'R', group: 0, units: 4, bytes: 3_240_000,
  load: 0.81, wish: 2, added: [8, 9], drained: [], left: [],
};

const report = (s: number, r: number, draining: number, decisions: object[] = []) =>
  reportOf({
    at: new Date(1_767_225_600_000 + s * 1000).toISOString(),
    span_s: 1,
    generation: 1,
    figures: {
      seconds: 1,
      adaptive: [{ stage: 1, plan: 1, units: { R: r, S: 4 }, draining: { R: draining, S: 0 }, loads: {} }],
      decisions,
    },
  });

const shown = (...reports: ReturnType<typeof report>[]) =>
  render(
    <MantineProvider env="test">
      <Decisions reports={reports} span="5 min" />
    </MantineProvider>,
  );

test('decisions are told with their numbers, newest first', () => {
  const left = { ...decision, plan: 2, batch: 20, units: 4, bytes: 0, load: 0, wish: 0, added: [], left: [9] };
  shown(report(0, 4, 0, [decision]), report(1, 6, 0, [left]));
  const [, first, second] = screen.getAllByRole('row').map((row) => row.textContent);
  expect(first).toContain('unit 9 left, empty');
  expect(second).toContain('adds units 8, 9');
  expect(second).toContain('81 %');
  expect(second).toContain('+2');
});

test('a span without any decision says so, and other joins are told apart', () => {
  const quiet = report(0, 4, 0);
  shown(quiet);
  expect(screen.getByText('Nothing was decided')).toBeDefined();
  const plain = reportOf({ at: '2026-01-01T00:00:00Z', span_s: 1, generation: 1, figures: { seconds: 1 } });
  expect([isAdaptive([plain]), isAdaptive([plain, quiet])]).toEqual([false, true]);
});

test('units over time are those that store, and those that drain', () => {
  const chart = unitsChart([report(0, 4, 0), report(1, 6, 0), report(2, 3, 3)]);
  expect(chart.series.map(({ label, values }) => [label, values])).toEqual([
    ['store R', [4, 6, 3]],
    ['store S', [4, 4, 4]],
    ['drain', [0, 0, 3]],
  ]);
  expect([storingUnits([], 'R'), drainingUnits([])]).toEqual([null, null]);
});

const ring = (s: number, nodes: number, best: number | null, decisions: object[] = []) =>
  reportOf({
    at: new Date(1_767_225_600_000 + s * 1000).toISOString(),
    span_s: 1,
    generation: 1,
    figures: {
      seconds: 1,
      adaptive: [{ stage: 1, plan: 1, units: { ring: nodes }, draining: { ring: 0 }, loads: {}, best }],
      decisions,
    },
  });

test('of a ring, nodes are shown beside the best number of them, and decisions say the way', () => {
  const chart = unitsChart([ring(0, 2, 5), ring(1, 5, null)]);
  expect(chart.series.map(({ label, values }) => [label, values])).toEqual([
    ['nodes', [2, 5]],
    ['N* nodes', [5, undefined]],
    ['drain', [0, 0]],
  ]);
  shown(ring(0, 2, 5, [{ ...decision, side: 'ring', way: 'aggressive' }]));
  const row = screen.getAllByRole('row')[1]?.textContent;
  expect(row).toContain('adds units 8, 9, aggressive');
  expect(row).not.toContain('subgroup');
});

test('a ring tells what its steps take, and whether that was measured, from the last look', () => {
  const times = [
    { name: 'join', symbol: 'T_j', us: 1234.5, origin: 'measured' },
    { name: 'send', symbol: 'T_s', us: 0.14, origin: 'assumed' },
  ];
  const model = { best: 3, bounds: [3.2, 9.1], lengths: { a: 3, b: 1 }, latency_s: 0.03, bandwidth_bytes_per_s: 2_000_000, times };
  const looked = (one: object | undefined) =>
    reportOf({
      at: '2026-01-01T00:00:00Z',
      span_s: 1,
      generation: 1,
      figures: { seconds: 1, adaptive: [{ stage: 1, plan: 1, units: { ring: 2 }, draining: { ring: 0 }, loads: {}, model: one }] },
    });
  shown(looked({ ...model, times: [] }), looked(model), looked(undefined));
  const words = screen.getByText(/N\* follows from/).textContent;
  expect(words).toContain('T_j 1.23 ms (measured), T_s 0.140 µs (assumed)');
  expect(words).toContain('a 3, b 1');
  expect(words).toContain('1.9 MiB/s');
});
