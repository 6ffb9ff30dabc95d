import { expect, test } from 'vitest';
import type { News } from '../api/types';
import { ROWS_MAX, Tail, type TailView } from './tail';

const snapshot = (id: string, values: number[], more: Partial<News> = {}): News => ({
  snapshot: id,
  rows: values.map((value) => [value]),
  dropped: 0,
  ...more,
});

const change = (id: string, ...rows: unknown[][]): News => ({ snapshot: id, rows, dropped: 0 });

const shown = (tail: Tail) => tail.getView().rows.map((row) => row.cells[0]);

test('the newest rows come first', () => {
  const tail = new Tail((draw) => draw());
  tail.onNews(snapshot('1.0', [1, 2]));
  tail.onNews(snapshot('2.0', [3]));
  expect(shown(tail)).toEqual([3, 2, 1]);
  expect(tail.getView().rows.map((row) => row.number)).toEqual([2, 1, 0]);
});

test('it keeps so many rows at most', () => {
  const tail = new Tail((draw) => draw());
  tail.onNews(
    snapshot(
      '1.0',
      Array.from({ length: ROWS_MAX + 5 }, (_, place) => place),
    ),
  );
  tail.onNews(snapshot('2.0', [-1]));
  expect(tail.getView().rows).toHaveLength(ROWS_MAX);
  expect(shown(tail).slice(0, 2)).toEqual([-1, ROWS_MAX + 4]);
  expect(tail.getView().received).toBe(ROWS_MAX + 6);
});

test('a paused tail stands still, counts what waits, and shows it afterwards', () => {
  const tail = new Tail((draw) => draw());
  tail.onNews(snapshot('1.0', [1]));
  tail.pause(true);
  tail.onNews(snapshot('2.0', [2, 3]));
  expect(shown(tail)).toEqual([1]);
  expect(tail.getView().waiting).toBe(2);
  tail.pause(false);
  expect(shown(tail)).toEqual([3, 2, 1]);
  expect(tail.getView().waiting).toBe(0);
});

test('what the server dropped is counted in rows and snapshots', () => {
  const tail = new Tail((draw) => draw());
  tail.onNews(snapshot('5.0', [1], { dropped: 3, gap: { first: '2.0', last: '4.0', rows: 70 } }));
  tail.onNews(snapshot('8.0', [1], { dropped: 2, gap: { first: '6.0', last: '7.0', rows: 5 } }));
  expect(tail.getView().dropped).toEqual({ rows: 75, snapshots: 5 });
});

test('many changes between two frames are drawn once', () => {
  const frames: (() => void)[] = [];
  const tail = new Tail((draw) => frames.push(draw));
  let drawn = 0;
  tail.watch(() => (drawn += 1));
  for (let place = 0; place < 50; place += 1) tail.onNews(snapshot(`${String(place)}.0`, [place]));
  expect(frames).toHaveLength(1);
  frames.forEach((draw) => draw());
  expect(drawn).toBe(1);
  tail.onNews(snapshot('60.0', [60]));
  expect(frames).toHaveLength(2);
});

test('a snapshot that was cut off is sent again, and its rows are shown once', () => {
  const tail = new Tail((draw) => draw());
  const columns = [{ name: 'n', type: 'int64' }];
  tail.onColumns(columns);
  tail.onNews(snapshot('1.0', [1]));
  tail.onNews(snapshot('2.0', [2, 3], { more: true }));
  tail.onNews(snapshot('2.0', [4], { more: true }));
  tail.onColumns(columns, [], '1.0');
  expect(tail.getView()).toMatchObject({ received: 1 });
  expect(shown(tail)).toEqual([1]);
  tail.onNews(snapshot('2.0', [2, 3], { more: true }));
  tail.onNews(snapshot('2.0', [4]));
  tail.onColumns(columns, [], '2.0');
  expect(shown(tail)).toEqual([4, 3, 2, 1]);
  expect(tail.getView().received).toBe(4);
});

test('a snapshot that is cut off while paused is counted once', () => {
  const tail = new Tail((draw) => draw());
  const columns = [{ name: 'n', type: 'int64' }];
  tail.onColumns(columns);
  tail.onNews(snapshot('1.0', [1]));
  tail.pause(true);
  tail.onNews(snapshot('2.0', [2], { more: true }));
  tail.onColumns(columns, [], '1.0');
  tail.onNews(snapshot('2.0', [2, 3]));
  expect(tail.getView().waiting).toBe(2);
  tail.pause(false);
  expect(shown(tail)).toEqual([3, 2, 1]);
});

test('what waits and what was dropped is right where a snapshot is cut off before or after a pause', () => {
  const columns = [{ name: 'n', type: 'int64' }];
  const gap = { first: '2.0', last: '2.0', rows: 7 };
  const counts = ({ received, waiting, dropped }: TailView) => [received, waiting, dropped.rows, dropped.snapshots];
  const before = new Tail((draw) => draw());
  before.onColumns(columns);
  before.onNews(snapshot('1.0', [1]));
  before.pause(true);
  before.onNews(snapshot('3.0', [2, 3], { more: true, dropped: 1, gap }));
  before.onNews(snapshot('3.0', [4], { more: true }));
  expect(counts(before.getView())).toEqual([4, 3, 7, 1]);
  before.onColumns(columns, [], '1.0');
  expect(counts(before.getView())).toEqual([1, 0, 0, 0]);
  before.onNews(snapshot('3.0', [2, 3], { more: true, dropped: 1, gap }));
  before.onNews(snapshot('3.0', [4]));
  before.onColumns(columns, [], '3.0');
  expect(counts(before.getView())).toEqual([4, 3, 7, 1]);

  const after = new Tail((draw) => draw());
  after.onColumns(columns);
  after.onNews(snapshot('1.0', [1, 2, 3], { more: true }));
  after.pause(true);
  after.onColumns(columns);
  expect(counts(after.getView())).toEqual([0, 0, 0, 0]);
  after.onNews(snapshot('1.0', [1], { more: true }));
  expect(counts(after.getView())).toEqual([1, 0, 0, 0]);
  after.onNews(snapshot('1.0', [2, 3, 4]));
  expect(counts(after.getView()), 'three of the four are shown').toEqual([4, 1, 0, 0]);
});

test('snapshots with more rows than come are counted', () => {
  const tail = new Tail((draw) => draw());
  tail.onNews(snapshot('1.0', [1], { truncated: true, more: true }));
  tail.onNews(snapshot('1.0', [2], { truncated: true }));
  tail.onNews(snapshot('2.0', [3]));
  expect(tail.getView().cut).toBe(1);
  tail.clear();
  expect(tail.getView().cut).toBe(0);
});

test('a change of columns clears the rows, also while paused, and keeps the note that says why', () => {
  const tail = new Tail((draw) => draw());
  const before = [
    { name: 'price', type: 'float64' },
    { name: 'bidder', type: 'int64' },
  ];
  tail.onColumns(before);
  tail.onNews({ ...change('1.0', [1.5, 7]), dropped: 1, gap: { first: '0.0', last: '0.0', rows: 4 } });
  tail.pause(true);
  tail.onNews(change('2.0', [2.5, 8]));
  tail.onEnd('restarted');
  tail.onColumns(before.toReversed());
  const { rows, received, waiting, dropped, end, gap } = tail.getView();
  expect({ rows, received, waiting, dropped, end }).toEqual({
    rows: [],
    received: 0,
    waiting: 0,
    dropped: { rows: 0, snapshots: 0 },
    end: null,
  });
  expect(gap).toBe('restarted');
  tail.onNews(change('1.0', [9, 3.5]));
  tail.pause(false);
  expect(tail.getView().rows.map((row) => row.cells)).toEqual([[9, 3.5]]);
  expect(tail.getView().gap).toBe('restarted');
});

test('rows of earlier results are cleared even if the new results have the same columns', () => {
  const tail = new Tail((draw) => draw());
  const columns = [{ name: 'n', type: 'int64' }];
  tail.onColumns(columns, [], null, 'matches.0');
  tail.onNews(snapshot('1.0', [1]));
  tail.onColumns(columns, [], '1.0', 'matches.0');
  expect(shown(tail)).toEqual([1]);
  tail.onEnd('restarted');
  tail.onColumns(columns, [], null, 'matches.1');
  tail.onNews(snapshot('1.0', [2]));
  expect(shown(tail)).toEqual([2]);
  expect(tail.getView()).toMatchObject({ received: 1, gap: 'restarted' });
});

test('rows of the same results stay, and the note about missing rows stays until it is cleared or replaced', () => {
  const tail = new Tail((draw) => draw());
  tail.onColumns([{ name: 'n', type: 'int64' }]);
  tail.onNews(snapshot('1.0', [1]));
  tail.onEnd('resync');
  tail.onColumns([{ name: 'n', type: 'int64' }]);
  tail.onNews(snapshot('9.0', [2]));
  expect(shown(tail)).toEqual([2, 1]);
  expect(tail.getView().gap).toBe('resync');
  tail.onEnd('restarted');
  expect(tail.getView().gap).toBe('restarted');
  tail.onEnd('deleted');
  expect(tail.getView()).toMatchObject({ end: 'deleted', gap: 'restarted' });
  tail.clear();
  expect(tail.getView().gap).toBeNull();
});
