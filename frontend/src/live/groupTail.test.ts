/** Groups that change: where they go on from, and when they are asked for again. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Problem, unreachable } from '../api/problem';
import type { News } from '../api/types';
import { Tail } from './tail';

// Promises settle as ever; only the pauses between questions pass at will.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const settled = () => new Promise((resolve) => setTimeout(resolve));

const problem = (status: number, detail: string) =>
  new Problem({ type: '', code: status === 422 ? 'invalid_query' : 'unavailable', status, title: 'No', detail });

const COLUMNS = ['k', 'n', 'op'].map((name) => ({ name, type: 'string' }));

const change = (id: string, ...rows: unknown[][]): News => ({ snapshot: id, rows, dropped: 0 });

test('groups that change are a table in place, which goes on from what they were', async () => {
  const asked: string[] = [];
  let give: (rows: unknown[][]) => void = () => undefined;
  const load = (snapshot: string) => {
    asked.push(snapshot);
    return new Promise<unknown[][]>((resolve) => (give = resolve));
  };
  const tail = new Tail((draw) => draw(), load);
  const rows = () => tail.getView().rows.map((row) => row.cells.slice(0, 2));
  tail.onColumns(COLUMNS, ['k'], '4.0');
  expect(asked).toEqual(['4.0']);
  tail.onNews(change('5.0', ['b', 2, 'upsert'], ['c', 3, 'upsert'], ['d', null, 'delete']));
  // What comes late is older than what came meanwhile.
  give([
    ['a', 1, 'upsert'],
    ['b', 1, 'upsert'],
    ['d', 1, 'upsert'],
  ]);
  await Promise.resolve();
  await Promise.resolve();
  await Promise.resolve();
  expect(rows()).toEqual([
    ['b', 2],
    ['c', 3],
    ['a', 1],
  ]);
  tail.onNews(change('6.0', ['c', 9, 'upsert'], ['b', null, 'delete']));
  expect(rows()).toEqual([
    ['c', 9],
    ['a', 1],
  ]);
  expect(tail.getView().received).toBe(5);
});

test('a table of groups begins anew with other results', async () => {
  const tail = new Tail(
    (draw) => draw(),
    () => Promise.reject(new Error('gone')),
  );
  tail.onColumns(COLUMNS, ['k'], '4.0', 'matches.0');
  tail.onNews(change('5.0', ['b', 2, 'upsert']));
  tail.onColumns(COLUMNS, ['k'], '7.0', 'matches.1');
  await Promise.resolve();
  await Promise.resolve();
  tail.onNews(change('8.0', ['c', 3, 'upsert']));
  expect(tail.getView().rows.map((row) => row.cells[0])).toEqual(['c']);
});

test('groups are asked for again where changes of them were left out', async () => {
  const asked: string[] = [];
  let answers: unknown[][][] = [];
  const load = (snapshot: string) => {
    asked.push(snapshot);
    const found = answers.shift();
    return found === undefined ? Promise.reject(problem(503, 'gone')) : Promise.resolve(found);
  };
  const tail = new Tail((draw) => draw(), load);
  const rows = () => tail.getView().rows.map((row) => row.cells.slice(0, 2));
  tail.onColumns(COLUMNS, ['k']);
  tail.onNews(change('1.0', ['a', 1, 'upsert'], ['b', 1, 'upsert'], ['c', 1, 'upsert']));
  expect(asked).toEqual([]);
  const whole = [
    ['a', 1, 'upsert'],
    ['b', 4, 'upsert'],
    ['d', 4, 'upsert'],
  ];
  answers = [whole];
  tail.onNews({ ...change('4.0', ['a', 4, 'upsert']), truncated: true, more: true });
  expect(asked).toEqual([]);
  tail.onNews({ ...change('4.0', ['b', 3, 'upsert']), truncated: true });
  // Snapshots that are dropped while the groups are on their way are asked for afterwards, once.
  answers.push([['d', 9, 'upsert']]);
  tail.onNews({ ...change('6.0', ['b', 6, 'upsert']), dropped: 1 });
  tail.onNews({ ...change('8.0', ['a', null, 'delete']), dropped: 1 });
  await settled();
  expect(asked).toEqual(['4.0', '8.0']);
  expect(rows()).toEqual([['d', 9]]);
  tail.onNews({ ...change('10.0', ['d', 10, 'upsert']), dropped: 1 });
  await settled();
  expect(rows(), 'what is there stays where asking fails').toEqual([['d', 10]]);
});

test('groups stay where nobody tells what became of them, which is asked again with a later change', async () => {
  const asked: string[] = [];
  let answer: unknown[][] | null = null;
  const load = (snapshot: string) => {
    asked.push(snapshot);
    return answer === null ? Promise.reject(unreachable('the network is away')) : Promise.resolve(answer);
  };
  const tail = new Tail((draw) => draw(), load);
  const rows = () => tail.getView().rows.map((row) => row.cells.slice(0, 2));
  tail.onColumns(COLUMNS, ['k']);
  tail.onNews(change('1.0', ['a', 1, 'upsert'], ['b', 1, 'upsert'], ['c', 1, 'upsert']));
  tail.onColumns(COLUMNS, ['k'], '4.0');
  await settled();
  vi.advanceTimersByTime(500);
  answer = [
    ['a', 5, 'upsert'],
    ['c', 4, 'upsert'],
  ];
  tail.onNews(change('5.0', ['a', 5, 'upsert']));
  expect(rows(), 'nothing vanishes').toEqual([
    ['a', 5],
    ['b', 1],
    ['c', 1],
  ]);
  await settled();
  expect(rows()).toEqual(answer.map((row) => row.slice(0, 2)));
  tail.onNews(change('6.0', ['a', 6, 'upsert']));
  await settled();
  expect(asked).toEqual(['4.0', '5.0']);
});

const failing = (failure: Problem) => {
  const asked: string[] = [];
  const answers: unknown[][][] = [];
  const load = (snapshot: string) => {
    asked.push(snapshot);
    const found = answers.shift();
    return found === undefined ? Promise.reject(failure) : Promise.resolve(found);
  };
  return { tail: new Tail((draw) => draw(), load), asked, answers };
};

test.each([429, 502, 503, 504])('groups are asked for ever more seldom while asking fails with %i', async (status) => {
  const { tail, asked, answers } = failing(problem(status, 'in a moment'));
  tail.onColumns(COLUMNS, ['k'], '0.0');
  let snapshots = 0;
  const come = async () => {
    snapshots += 1;
    tail.onNews({ ...change(`${String(snapshots)}.0`, ['a', snapshots, 'upsert']), dropped: 1 });
    await settled();
  };
  await settled();
  for (let at = 0; at < 20; at += 1) await come();
  expect(asked).toEqual(['0.0']);
  for (let passed = 0; passed < 60; passed += 1) {
    vi.advanceTimersByTime(1_000);
    await come();
  }
  expect(asked.length).toBeGreaterThan(8);
  expect(asked.length).toBeLessThan(20);
  expect(tail.getView().problem).toBeNull();
  vi.advanceTimersByTime(10_000);
  answers.push([['b', 1, 'upsert']]);
  await come();
  expect(tail.getView().rows.map((row) => row.cells[0])).toEqual(['b']);
});

test('a failure that stays is told, and not asked again until the columns come anew', async () => {
  const { tail, asked, answers } = failing(problem(422, 'the groups take more than 256 MiB'));
  tail.onColumns(COLUMNS, ['k'], '0.0');
  for (let at = 1; at <= 100; at += 1) {
    vi.advanceTimersByTime(10_000);
    tail.onNews({ ...change(`${String(at)}.0`, ['a', at, 'upsert']), dropped: 1 });
    await settled();
  }
  expect(asked).toEqual(['0.0']);
  expect(tail.getView().problem).toMatchObject({
    status: 422,
    title: 'Some groups are missing or have old values',
    detail: 'the groups take more than 256 MiB',
  });
  answers.push([['b', 1, 'upsert']]);
  tail.onColumns(COLUMNS, ['k'], '100.0');
  await settled();
  expect(asked).toEqual(['0.0', '100.0']);
  expect(tail.getView().problem).toBeNull();
});

test('a failure of before the columns came anew is told no more', async () => {
  const asked: string[] = [];
  let refuse: (failure: Problem) => void = () => undefined;
  const load = (snapshot: string) => {
    asked.push(snapshot);
    return asked.length > 1 ? Promise.resolve([]) : new Promise<unknown[][]>((_, reject) => (refuse = reject));
  };
  const tail = new Tail((draw) => draw(), load);
  tail.onColumns(COLUMNS, ['k'], '1.0');
  tail.onColumns(COLUMNS, ['k'], '9.0');
  refuse(problem(422, 'snapshots before 5.0 have been removed'));
  await settled();
  expect(asked).toEqual(['1.0', '9.0']);
  expect(tail.getView().problem).toBeNull();
});

test('groups that could not be had are asked for again although nothing changes any more', async () => {
  const { tail, asked, answers } = failing(unreachable('the network is away'));
  const progress = { snapshot: '4.0', mark: null, lag_ms: null, phase: 'running', waiting: 0 };
  tail.onColumns(COLUMNS, ['k']);
  tail.onNews(change('1.0', ['a', 1, 'upsert']));
  tail.onColumns(COLUMNS, ['k'], '4.0');
  await settled();
  tail.onProgress(progress);
  expect(asked, 'the pause is not over').toEqual(['4.0']);
  vi.advanceTimersByTime(500);
  answers.push([['a', 4, 'upsert']]);
  tail.onProgress({ ...progress, snapshot: '5.0' });
  await settled();
  expect(asked).toEqual(['4.0', '5.0']);
  expect(tail.getView().rows.map((row) => row.cells.slice(0, 2))).toEqual([['a', 4]]);
  vi.advanceTimersByTime(10_000);
  tail.onProgress(progress);
  await settled();
  expect(asked).toHaveLength(2);
});
