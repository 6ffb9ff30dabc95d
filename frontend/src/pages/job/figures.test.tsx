import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { expect, test, vi } from 'vitest';
import { reportOf } from '../../api/figures';
import type { Job } from '../../api/types';
import { heldBack } from './heldBack';
import { inputOf } from './input';
import { JobStats } from './JobStats';
import { QueryText } from './QueryText';
import { snapshotWords } from './Snapshots';
import { StreamFigures } from './StreamFigures';
import { cameWords, Waiting } from './TailPanel';

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
      <JobStats job={job} reports={reports} input={input} held={null} span="5 min" />
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
  // A row may be given as unmatched by one stage, and again by the next.
  shown(report(0, 500, { ...decided('LEFT', 7, 0), stages: [...stages('LEFT'), { ...stages('LEFT')[0], stage: 2 }] }));
  expect(screen.getByText(/^1,200 given as unmatched in all stages in the last/)).toBeDefined();
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
      <MemoryRouter initialEntries={['/jobs/job_1']}>
        <Waiting job={job} input={inputOf(job, reports)} held={null} view={view} />
      </MemoryRouter>
    </MantineProvider>
  );
  const { rerender } = render(wait(report(0, 500)));
  expect(screen.getByText('Waiting for the next results')).toBeDefined();
  rerender(wait(report(0, 500), report(30, 0)));
  expect(screen.queryByText('Waiting for the next results')).toBeNull();
  const link = screen.getByRole('link', { name: 'Ask shows the results that are kept' });
  expect(link.getAttribute('href')).toBe('/jobs/job_1?tab=ask');
});

test('of a job that gives no more rows it is not said that 0 came: the others came before', () => {
  const none = { groups: [], rows: [], received: 0 };
  expect(cameWords(none, true)).toBe('none since you opened this page');
  expect(cameWords(none, false)).toBe('0 rows came, newest first');
  expect(cameWords({ ...none, received: 3 }, true)).toBe('3 rows came, newest first');
});

test('groups and rows that wait for rows which do not come are told, and what gives them', () => {
  const stages = [
    { stage: 1, kind: 'LEFT', inputs: [{ stream: 'r' }, { stream: 's' }] },
    { stage: 2, kind: null, inputs: [{ stage: 1 }] },
  ];
  const units = [1, 2, 2].map((stage, unit) => ({ unit, stage, label: '', stored_rows: 18 }));
  const over = report(30, 0, { stages, units });
  const grouped = { ...job, queries: {}, query: `${QUERY} GROUP BY r.k, TUMBLE(1 MINUTE)` };
  const input = inputOf(grouped, [report(0, 500), over]);
  const held = heldBack(grouped, input, over);
  expect(held).toBe('36 groups wait for later rows');
  expect(heldBack(grouped, input, { ...over, openRows: 1 })).toBe('36 groups and 1 row wait for later rows');
  expect(heldBack({ ...grouped, query: QUERY }, input, { ...over, openRows: 1 })).toBe('1 row waits for later rows');
  // Groups without windows are given as they change.
  expect(heldBack({ ...grouped, query: `${QUERY} GROUP BY r.k` }, input, over)).toBeNull();
  expect(heldBack(grouped, { ...input, kind: 'coming' }, over)).toBeNull();
  expect(heldBack({ ...grouped, phase: 'stopped' }, input, over)).toBeNull();
  render(
    <MantineProvider env="test">
      <MemoryRouter>
        <JobStats job={grouped} reports={[over]} input={input} held={held} span="5 min" />
        <Waiting job={grouped} input={input} held={held} view={{ end: null }} />
      </MemoryRouter>
    </MantineProvider>,
  );
  expect(screen.getByText(/^the last tuples came at .*; 36 groups wait for later rows$/)).toBeDefined();
  expect(screen.getByText(/^All input was joined, and 36 groups wait/).textContent).toContain('With Until the end');
  expect(screen.queryByText('No more results come')).toBeNull();
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
