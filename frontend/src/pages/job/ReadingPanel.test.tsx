import { MantineProvider } from '@mantine/core';
import { cleanup, render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { reportOf } from '../../api/figures';
import { phaseWords, ReadingPanel } from './ReadingPanel';

const shown = (reading: unknown) => {
  const report = reportOf({ at: '2026-01-01T00:00:00Z', span_s: 1, generation: 1, figures: { reading } });
  return render(
    <MantineProvider env="test">
      <ReadingPanel report={report} />
    </MantineProvider>,
  ).container;
};

const told = (label: string) => screen.getByText(label).closest('div')?.textContent;

const SSBJ = {
  counts: { tuples: 100 },
  holding: { memory_bytes: 1 << 20, memory_bytes_allowed: 4 << 20, units_counting: 0, units_switching: 2, units_phasing_out: 0 },
  units: 2, at_once: 2, rate_per_s: 1500, rows_read_per_tuple: 0.25, cached_share: 0.5,
  predicted: { text: 't', rate_per_s: 2000, rows_read_per_tuple: 0.2, cached_share: 0.62, memory_bytes: 4 << 20 },
};

test('measured figures are shown beside the predicted ones', () => {
  shown(SSBJ);
  expect(told('Joined in a second of work')).toBe('Joined in a second of work1.5K/spredicted 2K/s, with full memory');
  expect(told('From the cache')).toContain('predicted 62');
  expect(told('Memory')).toBe('Memory1.0 MiBof 4.0 MiB');
  expect(told('Round')).toBe('Roundswitchingof the units');
});

test('a relation that is looked up has neither a cache nor a bound, and other jobs have no panel', () => {
  shown({ counts: { tuples: 9 }, holding: {}, units: 1, at_once: 1, rate_per_s: 9, predicted: null });
  expect(told('Joined in a second of work')).toContain('nothing was predicted');
  expect(screen.queryByText('Memory')).toBeNull();
  expect(screen.queryByText('From the cache')).toBeNull();
  cleanup();
  shown(undefined);
  expect(screen.queryByText('Relation')).toBeNull();
});

test('a rate that takes more than there is is a warning', () => {
  const holding = { memory_bytes: SSBJ.holding.memory_bytes };
  shown({ ...SSBJ, holding, predicted: { ...SSBJ.predicted, problem: 'it takes more' } });
  expect(screen.getByText('it takes more')).toBeDefined();
  expect(told('Memory')).toContain('predicted 4.0 MiB');
});

test('units in rounds of different kinds are counted', () => {
  expect(phaseWords({ counting: 1, switching: 0, phasingOut: 3 })).toBe('1 counting, 3 phase-out');
});
