import { expect, test } from 'vitest';
import { reportOf } from '../../api/figures';
import type { Explanation, Job } from '../../api/types';
import { planOf } from '../join/plan';
import { nextSorting, rangeOf, rowsOf, sorted } from './comparison';
import { measuredOf, runningOver, runsBy } from './measured';
import { endNames, linesOf, ticksOf } from './scaling';
import { draftOf, resolved, scaledDraft, settingOf, withKnob, type Setting } from './setting';

const OPERATORS = [
  { name: 'biclique', system: 'BiStream', settings: {}, runs_jobs: true },
  { name: 'handshake', system: 'ESJ', settings: {}, runs_jobs: true },
  { name: 'spark', system: 'Spark', settings: {}, runs_jobs: false },
];

const option = (name: string, memory_bytes: number | null, refusal: string | null = null) => ({
  name,
  refusal,
  memory_bytes,
  replication: memory_bytes && 2,
  comparisons_per_s: memory_bytes && 3,
  bytes_per_s: memory_bytes && 4,
});

const explained = (...operators: ReturnType<typeof option>[]): Explanation => ({
  plan: {
    operator: 'biclique',
    described: 'biclique, hash routing, 2 units store R and 2 store S',
    sampled: { r: { tuples_per_s: 60 }, s: { tuples_per_s: 1_920.5 } },
    operators,
  },
  text: '',
  columns: [],
});

const BASE = explained(option('biclique', 10), option('handshake', 30), option('spark', null, 'it needs an equality'));

const setting = (given: Partial<Setting> = {}): Setting => ({ slots: 4, ordering: 'none', knobs: {}, ...given });

test('a job tells how it runs, and nobody does for a query that is typed', () => {
  const operator = { name: 'matrix', rows: 3, ordering: 'inner' };
  expect(settingOf({ operator, run: { slots: 8 } }, 2)).toEqual({
    slots: 8,
    ordering: 'inner',
    knobs: { matrix: { rows: 3 } },
  });
  expect(settingOf(undefined, 2)).toEqual({ slots: 2, ordering: 'none', knobs: {} });
});

test('knobs of auto are those of the operator that it takes', () => {
  const given = settingOf({ operator: { name: 'auto', r_units: 3 }, run: {} }, 2);
  expect(resolved(given, 'biclique').knobs).toEqual({ biclique: { r_units: 3 } });
  expect(resolved(withKnob(given, 'biclique', 'r_units', 5), 'biclique').knobs).toEqual({ biclique: { r_units: 5 } });
});

test('an emptied knob is none', () => {
  const turned = withKnob(setting(), 'matrix', 'rows', 3);
  expect(draftOf('q', turned, 'matrix').operator).toEqual({ name: 'matrix', rows: 3 });
  expect(draftOf('q', withKnob(turned, 'matrix', 'rows', ''), 'matrix').operator).toEqual({ name: 'matrix' });
  expect(draftOf('q', setting({ ordering: 'total' }), 'spark')).toEqual({
    query: 'q',
    operator: { name: 'spark', ordering: 'total' },
    run: { slots: 4 },
  });
});

test('over slots no knob fixes the units, and the others stay', () => {
  const knobs = { matrix: { rows: 3 }, biclique: { routing: 'random', r_units: 5 } };
  expect(scaledDraft('q', setting({ knobs }), 16)).toEqual({
    query: 'q',
    operator: { name: 'biclique', routing: 'random' },
    run: { slots: 16 },
  });
  expect(scaledDraft('q', setting({ knobs: { matrix: { rows: 3 } } }), 1).operator).toEqual({ name: 'auto' });
});

test('each operator stands with its own answer, or with why there is none', () => {
  const [biclique, handshake, spark] = rowsOf(OPERATORS, BASE, undefined, [
    { explanation: explained(option('biclique', 20)) },
    { mistakes: [{ pointer: '/operator/workers', detail: '0 is no number of workers' }] },
    {},
  ]);
  expect(biclique).toMatchObject({
    described: 'hash routing, 2 units store R and 2 store S',
    refusal: null,
    orderRefusal: undefined,
    figures: { memoryBytes: 20, bytesPerS: 4 },
  });
  expect(handshake).toMatchObject({ refusal: '0 is no number of workers', figures: { memoryBytes: null } });
  expect(spark).toMatchObject({ refusal: 'it needs an equality', described: '' });
});

test('who gives no order says why', () => {
  const ordered = explained(option('biclique', 10), option('handshake', null, 'results come in no order'));
  const rows = rowsOf(OPERATORS, BASE, ordered, []);
  expect(rows.map((row) => row.orderRefusal)).toEqual([null, 'results come in no order', undefined]);
});

test('rates are read where an explanation has them', () => {
  expect(planOf(BASE).arrivingPerS).toBe(1_980.5);
  expect(planOf({ ...BASE, plan: { ...BASE.plan, sampled: null } }).arrivingPerS).toBeNull();
  expect(planOf({ ...BASE, plan: { ...BASE.plan, sampled: { r: {}, s: {} } } }).arrivingPerS).toBeNull();
});

test('the least is marked, unless all are the same', () => {
  const rows = rowsOf(OPERATORS, BASE, undefined, []);
  expect(rangeOf(rows, 'memoryBytes')).toEqual({ best: 10, most: 30 });
  expect(rangeOf(rows, 'replication')).toEqual({ best: null, most: 2 });
  expect(rangeOf([], 'replication')).toEqual({ best: null, most: 0 });
});

test('rows are sorted both ways, and those without a figure come last', () => {
  const rows = rowsOf(OPERATORS, BASE, undefined, []);
  const names = (down: boolean) => sorted(rows, { by: 'memoryBytes', down }).map(({ name }) => name);
  expect(names(false)).toEqual(['biclique', 'handshake', 'spark']);
  expect(names(true)).toEqual(['handshake', 'biclique', 'spark']);
  let sorting = nextSorting(null, 'name');
  expect(sorting).toEqual({ by: 'name', down: false });
  sorting = nextSorting(sorting, 'name');
  expect(sorting).toEqual({ by: 'name', down: true });
  expect(nextSorting(sorting, 'name')).toBeNull();
});

test('lines go through what is known, and operators without figures have none', () => {
  const steps = [
    { slots: 1, explanation: BASE },
    { slots: 2, explanation: explained(option('biclique', 15)) },
  ];
  expect(linesOf(steps, 'memoryBytes')).toEqual([
    { label: 'biclique', values: [10, 15] },
    { label: 'handshake', values: [30, null] },
  ]);
});

test('ticks are round and reach the top', () => {
  expect(ticksOf(64, 4, 10)).toEqual([0, 20, 40, 60, 80]);
  expect(ticksOf(3_900_000, 4, 2)).toEqual([0, 2 ** 20, 2 * 2 ** 20, 3 * 2 ** 20, 4 * 2 ** 20]);
  expect(ticksOf(1, 4, 10).at(-1)).toBeGreaterThanOrEqual(1);
  expect(ticksOf(0, 4, 10)).toEqual([0, 1]);
});

test('names at the ends of lines do not lie on each other', () => {
  expect(endNames([10, 11, 40, null], 16, 200)).toEqual([
    { line: 0, y: 10 },
    { line: 1, y: 26 },
    { line: 2, y: 42 },
  ]);
  expect(endNames([198, 190], 16, 200)).toEqual([
    { line: 1, y: 184 },
    { line: 0, y: 200 },
  ]);
});

const job = (id: string, streams: string[], name: string, phase = 'running') =>
  ({ id, streams, phase, operator: { name } }) as unknown as Job;

test('running jobs over the same two streams are found, whichever comes first', () => {
  const jobs = [
    job('1', ['s', 'r'], 'auto'),
    job('2', ['r', 's'], 'matrix', 'stopped'),
    job('3', ['r', 'x'], 'matrix'),
  ];
  expect(runningOver(jobs, ['r', 's']).map(({ id }) => id)).toEqual(['1']);
  expect(runningOver(jobs, [])).toEqual([]);
  expect(runsBy(job('1', [], 'auto'), 'biclique')).toBe('biclique');
  expect(runsBy(job('1', [], 'matrix'), 'biclique')).toBe('matrix');
});

test('a report is measured against what came in', () => {
  const figures = {
    tuples: { r: 60, s: 40 },
    comparisons: 500,
    seconds: 2,
    units: [{ received: 120 }, { received: 80 }],
  };
  const point = { at: null, span_s: 2, generation: 1, figures };
  expect(measuredOf(reportOf(point))).toMatchObject({ replication: 2, comparisonsPerS: 250, comparisonsPerTuple: 5 });
  expect(measuredOf(reportOf({ ...point, figures: {} }))).toMatchObject({
    replication: null,
    comparisonsPerTuple: null,
  });
});
