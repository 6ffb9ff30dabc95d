import { expect, test } from 'vitest';
import { drawable, groupChart, LINES_MAX } from './groupChart';

const COLUMNS = [
  { name: 'k', type: 'int64' },
  { name: 'name', type: 'string' },
  { name: 'n', type: 'int64' },
  { name: 'op', type: 'string' },
  { name: 'emit_time', type: 'timestamp[us, tz=UTC]' },
];
const T0_S = 1_767_225_600;
const change = (atS: number, k: number | null, n: unknown, op = 'upsert') => ({
  number: 0,
  snapshot: '1.0',
  cells: [k, 'x', n, op, new Date((T0_S + atS) * 1000).toISOString()],
});

test('numbers can be drawn that do not tell groups apart', () => {
  expect(drawable(COLUMNS, ['k'])).toEqual(['n']);
  expect(drawable(COLUMNS, ['name'])).toEqual(['k', 'n']);
});

test('each group is a line in event time whose last value holds, and its end a hole', () => {
  const changes = [change(3, 1, 30), change(1, 1, 10), change(1, null, '2.50'), change(2, 1, null, 'delete')];
  expect(groupChart(COLUMNS, ['k'], changes, 'n')).toEqual({
    atS: [T0_S + 1, T0_S + 2, T0_S + 3],
    series: [
      { label: '1', values: [10, null, 30] },
      { label: 'NULL', values: [2.5, undefined, 2.5] },
    ],
    restartsS: [],
  });
});

test('the hole of a group that ended lasts until the group is there again, whatever others do', () => {
  const others = [1, 2, 3, 4, 5].map((at) => change(at, 2, at));
  const one = [change(2, 1, 20), change(3, 1, null, 'delete'), change(5, 1, 50)];
  const { series } = groupChart(COLUMNS, ['k'], [...others, ...one], 'n');
  expect(series[1]).toEqual({ label: '1', values: [undefined, 20, null, null, 50] });
});

test('groups are told apart that are written alike', () => {
  const columns = [{ name: 'a', type: 'string' }, { name: 'b', type: 'string' }, ...COLUMNS.slice(2)];
  const of = (a: string | null, b: string, n: number) => {
    const one = change(1, 1, n);
    return { ...one, cells: [a, b, ...one.cells.slice(2)] };
  };
  const changes = [of('a, b', 'c', 1), of('a', 'b, c', 2), of(null, 'x', 3), of('NULL', 'x', 4)];
  expect(groupChart(columns, ['a', 'b'], changes, 'n').series).toEqual([
    { label: 'a, b, c', values: [1] },
    { label: 'a, b, c', values: [2] },
    { label: 'NULL, x', values: [3] },
    { label: 'NULL, x', values: [4] },
  ]);
});

test('the busiest groups are drawn, and a change that comes twice counts once', () => {
  const quiet = Array.from({ length: 5 }, () => change(1, 99, 1));
  const busy = Array.from({ length: 2 * LINES_MAX }, (_, at) => change(at, at % LINES_MAX, at));
  const labels = groupChart(COLUMNS, ['k'], [...quiet, ...busy], 'n').series.map(({ label }) => label);
  expect(labels).toHaveLength(LINES_MAX);
  expect(labels).not.toContain('99');
});
