import { expect, test } from 'vitest';
import type { News } from '../api/types';
import { ROWS_MAX, Tail } from './tail';

const snapshot = (id: string, values: number[], more: Partial<News> = {}): News => ({
  snapshot: id,
  rows: values.map((value) => [value]),
  dropped: 0,
  ...more,
});

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
