import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { reportOf } from '../../api/figures';
import type { Job } from '../../api/types';
import { inputOf } from './input';
import { JobStats } from './JobStats';
import { QueryText } from './QueryText';
import { snapshotWords } from './Snapshots';
import { StreamFigures } from './StreamFigures';
import { Waiting } from './TailPanel';

const QUERY = 'SELECT ONLINE r.k\nFROM r, s WHERE r.k = s.k WITHIN 5 SECONDS';
const job = {
  name: 'wins',
  query: QUERY,
  streams: ['r', 's'],
  phase: 'running',
  observed: 'running',
  reason: null,
  generation: 1,
  failures: 0,
} as unknown as Job;

const report = (s: number, tuples: number, more: object = {}) =>
  reportOf({
    at: new Date(1_767_225_600_000 + s * 1000).toISOString(),
    span_s: 1,
    generation: 1,
    figures: {
      seconds: 1,
      tuples_per_second: tuples,
      tuples: { r: tuples, s: 0 },
      live_tuples: { r: 70, s: 30 },
      totals: { tuples: 62_100, results: 934 },
      bounded: ['r', 's'],
      ...more,
    },
  });

function shown(...reports: ReturnType<typeof report>[]) {
  const input = inputOf(job, reports);
  render(
    <MantineProvider env="test">
      <JobStats job={job} reports={reports} input={input} span="5 min" />
      <StreamFigures job={job} reports={reports} input={input} span="5 min" />
    </MantineProvider>,
  );
}

test('while input comes the figures are rates, and tuples are live', () => {
  shown(report(0, 500));
  expect(screen.getByText('500/s', { selector: 'dd' })).toBeDefined();
  expect(screen.getByText('100 live tuples')).toBeDefined();
  expect(screen.getByRole('columnheader', { name: 'Live' })).toBeDefined();
  expect(screen.getByRole('columnheader', { name: 'Watermark' })).toBeDefined();
});

test('rows that wait, and what became of others, are told where the plan decides on rows', () => {
  const stages = (kind: string) => [{ stage: 1, results: 3, kind, inputs: [{ stream: 'r' }, { stream: 's' }] }];
  const decided = (kind: string, open: number, tooLate: number) => ({
    stages: stages(kind), open_rows: open, unmatched_rows: 1200, late_after_final: tooLate,
  });
  shown(report(0, 500, decided('LEFT', 9, 0)), report(1, 500, decided('LEFT', 7, 2)));
  const told = screen.getByText('Rows that wait').closest('div');
  expect(told?.textContent).toBe('Rows that wait72,400 given as unmatched, 2 too late after they were final in the last 5 min');
  cleanup();
  shown(report(0, 500, decided('INNER', 9, 2)));
  expect(screen.queryByText('Rows that wait')).toBeNull();
  cleanup();
  shown(report(0, 500, decided('LEFT ANTI', 9, 0)));
  expect(screen.getByText(/^1,200 given as unmatched/).textContent).not.toContain('too late');
});

test('a query that began again in its driver is counted beside failures, in the time that is shown', () => {
  shown(report(0, 500), report(1, 500, { reconnects: 0 }));
  expect(screen.queryByText(/late to connect/)).toBeNull();
  cleanup();
  shown(report(0, 500, { reconnects: 1 }), report(1, 500));
  expect(screen.getByText(/^its query began once again in the last 5 min/)).toBeDefined();
  cleanup();
  shown(report(0, 500, { reconnects: 2 }), report(1, 500, { reconnects: 1 }));
  expect(screen.getByText(/^its query began 3 times again/)).toBeDefined();
  expect(screen.getByText(/no failure since its last start/)).toBeDefined();
});

test('input that is over says "finished", with totals in place of zeros, and nothing is called live', () => {
  shown(report(0, 500), report(30, 0));
  expect(screen.getAllByText('finished')).toHaveLength(3);
  expect(screen.getByText(/^the last tuples came at \d\d:\d\d:\d\d$/)).toBeDefined();
  expect(screen.getByText('62.1K')).toBeDefined();
  expect(screen.getByText('934')).toBeDefined();
  expect(screen.queryByText('0/s')).toBeNull();
  expect(screen.getByText('100 stored tuples')).toBeDefined();
  expect(screen.getByRole('columnheader', { name: 'Stored' })).toBeDefined();
});

test('where no more input comes nobody waits for results, and it is said where those are that came', () => {
  const view = { end: null };
  const wait = (...reports: ReturnType<typeof report>[]) => (
    <MantineProvider env="test">
      <Waiting job={job} input={inputOf(job, reports)} view={view} />
    </MantineProvider>
  );
  const { rerender } = render(wait(report(0, 500)));
  expect(screen.getByText('Waiting for the next results')).toBeDefined();
  rerender(wait(report(0, 500), report(30, 0)));
  expect(screen.queryByText('Waiting for the next results')).toBeNull();
  expect(screen.getByText(/Ask shows the results that are kept/)).toBeDefined();
});

test('one snapshot is not called several', () => {
  expect(snapshotWords(1, 39, 39)).toBe('1 snapshot with 39 rows');
  expect(snapshotWords(2, 1, 1)).toBe('2 snapshots with 1 row, the largest with 1');
});

test('the query stands there as it was written, and is copied by a button with a name, which tells that it did', async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } });
  render(
    <MantineProvider env="test">
      <QueryText job={{ ...job, queries: { dear: { query: 'q' } } }} />
    </MantineProvider>,
  );
  expect(screen.getByRole('region', { name: 'Text of the query' }).textContent).toBe(QUERY);
  expect(screen.getByText('1 more beside it, in Definition')).toBeDefined();
  fireEvent.click(screen.getByRole('button', { name: 'Copy the query' }));
  await screen.findByText('Copied the query');
  expect(writeText).toHaveBeenCalledWith(QUERY);
});
