import { MantineProvider } from '@mantine/core';
import { act, render, screen, waitFor } from '@testing-library/react';
import type uPlot from 'uplot';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { chooseZone } from '../times';
import type { ChartData } from './series';
import { TimeChart } from './TimeChart';

/** What stands in for the library that draws: jsdom has no canvas. */
const { FakePlot } = vi.hoisted(() => {
  class FakePlot {
    static last: FakePlot | null = null;
    static paths = { stepped: (options: unknown) => ({ stepped: options }) };
    readonly options: uPlot.Options;
    data: unknown[] = [];
    constructor(options: uPlot.Options) {
      this.options = options;
      FakePlot.last = this;
    }
    batch = (act: () => void) => act();
    setData = (data: unknown[]) => {
      if (data.length !== this.options.series.length) throw new Error('there are other series than these');
      this.data = data;
    };
    setScale = () => undefined;
    setSize = () => undefined;
    destroy = () => undefined;
  }
  return { FakePlot };
});
vi.mock('uplot', () => ({ default: FakePlot }));
vi.mock('@mantine/hooks', async (original) => ({
  ...(await original<typeof import('@mantine/hooks')>()),
  useElementSize: () => ({ ref: () => undefined, width: 400, height: 150 }),
}));

const T0_S = 1_767_225_600;
const zoneBefore = process.env.TZ;

beforeEach(() => {
  FakePlot.last = null;
  chooseZone('utc');
});

afterEach(() => {
  process.env.TZ = zoneBefore;
});

const drawn = (atS: number[], ...series: ChartData['series']) => drawnAs({ holds: false }, atS, ...series);

async function drawnAs({ holds }: { holds: boolean }, atS: number[], ...series: ChartData['series']) {
  const data = { atS: atS.map((at) => T0_S + at), series, restartsS: [] };
  render(
    <MantineProvider env="test">
      <TimeChart
        title="n"
        data={data}
        format={String}
        view={{ zoom: null, isLog: false }}
        holds={holds}
        onZoom={() => undefined}
      />
    </MantineProvider>,
  );
  await waitFor(() => expect(FakePlot.last?.data).toHaveLength(series.length + 1));
  const plot = FakePlot.last as unknown as uPlot & { options: uPlot.Options };
  return { plot, options: plot.options };
}

test('a label with a line break is one label, and stands by itself whichever way it is read', async () => {
  const label = '\u05d0\nb';
  const { options } = await drawn([0, 1], { label, values: [1, 2] }, { label: 'c', values: [3, 4] });
  expect(options.series.slice(1).map((one) => one.label)).toEqual([label, 'c']);
  expect([...document.querySelectorAll('figcaption li bdi')].map((one) => one.textContent)).toEqual([label, 'c']);
});

test('lines of the same label are two lines', async () => {
  const warned = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  await drawn([0, 1], { label: 'NULL', values: [1, 2] }, { label: 'NULL', values: [3, 4] });
  expect(screen.getAllByRole('listitem', { hidden: true }).map((one) => one.textContent)).toEqual(['NULL 2', 'NULL 4']);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});

test('what is known of one time only is drawn as a point, with some room around', async () => {
  const { plot, options } = await drawn([0], { label: 'a', values: [7] });
  const { filter } = options.series[1]?.points ?? {};
  expect(typeof filter === 'function' && filter(plot, 1, false)).toEqual([0]);
  const { range } = options.scales?.x ?? {};
  expect(typeof range === 'function' && range(plot, T0_S, T0_S + 86_400, 'x')).toEqual([T0_S - 30, T0_S + 30]);
  expect(screen.queryByText('nothing reported in this time')).toBeNull();
});

test('values that hold are steps that end with a hole, and others slope', async () => {
  const { options } = await drawn([0, 1], { label: 'a', values: [1, 2] });
  expect(options.series[1]?.paths).toBeUndefined();
  FakePlot.last = null;
  const { options: held } = await drawnAs({ holds: true }, [0, 1, 2], { label: 'a', values: [1, undefined, 2] });
  expect(held.series[1]?.paths).toEqual({ stepped: { align: 1, alignGaps: 1 } });
});

test('times that are days apart have dates', async () => {
  const daysS = [0, 1, 2, 3].map((day) => day * 86_400);
  const { plot, options } = await drawn(daysS, { label: 'a', values: [1, 2, 3, 4] });
  const { values } = options.axes?.[0] ?? {};
  const words = (stepS: number) => typeof values === 'function' && values(plot, [T0_S + 43_200], 0, 0, stepS);
  expect([words(86_400), words(3_600), words(10)]).toEqual([['2026-01-01'], ['12:00'], ['12:00:00']]);
  act(() => {
    for (const hook of options.hooks?.setCursor ?? []) hook?.({ cursor: { idx: 2 } } as unknown as uPlot);
  });
  expect(screen.getByText('2026-01-03 00:00:00Z')).toBeDefined();
});

test.each([
  { zone: 'utc', first: T0_S },
  // Midnight there is half past six in the evening of UTC.
  { zone: 'local', first: T0_S - 5.5 * 3_600 },
] as const)('of times within a few days each midnight of the zone $zone has its date', async ({ zone, first }) => {
  process.env.TZ = 'Asia/Kolkata';
  chooseZone(zone);
  const { plot, options } = await drawn([0, 40 * 3_600], { label: 'a', values: [1, 2] });
  const { values } = options.axes?.[0] ?? {};
  const words = (...splits: number[]) => (stepS: number) =>
    typeof values === 'function' && values(plot, splits.map((split) => first + split), 0, 0, stepS);
  const halfDays = [0, 1, 2, 3].map((half) => half * 43_200);
  expect(words(...halfDays)(43_200)).toEqual(['2026-01-01', '12:00', '2026-01-02', '12:00']);
  expect(words(86_390, 86_400, 86_410)(10)).toEqual(['23:59:50', '2026-01-02', '00:00:10']);
});

test('no label along an axis repeats the one before it', async () => {
  const { plot, options } = await drawn([0, 3], { label: 'a', values: [1, 2] });
  const inScales = { ...plot, scales: { y: { min: 0 } } } as unknown as uPlot;
  const along = (axis: number, splits: number[], stepS = 0) => {
    const { values } = options.axes?.[axis] ?? {};
    return typeof values === 'function' && values(inScales, splits, axis, 0, stepS);
  };
  const halves = [5, 5.5, 6, 6.5].map((split) => T0_S + split);
  expect(along(0, halves, 0.5)).toEqual(['00:00:05', '', '00:00:06', '']);
  const within = [5.2, 5.4, 5.6].map((split) => T0_S + split);
  expect(along(0, within, 0.2)).toEqual(['00:00:05', '', '']);
  expect(along(1, [0, 1, 1, 2])).toEqual(['0', '1', '', '2']);
});

test('a chart without a value says so in place of axes', () => {
  const data = { atS: [T0_S, T0_S + 1], series: [{ label: 'p50', values: [undefined, null] }], restartsS: [] };
  render(
    <MantineProvider env="test">
      <TimeChart title="Latency" data={data} format={String} view={{ zoom: null, isLog: false }} onZoom={() => undefined} />
    </MantineProvider>,
  );
  expect(screen.getByText('nothing reported in this time')).toBeDefined();
  expect(FakePlot.last).toBeNull();
});
