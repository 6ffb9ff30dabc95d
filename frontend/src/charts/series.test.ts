import { expect, test } from 'vitest';
import { reportOf, type Report } from '../api/figures';
import { formatRate } from '../format';
import { alone, chartOf, described, lagChart, leftOutChart, stateChart, valueAt } from './series';

const report = (atS: number, figures: Record<string, unknown>, generation = 1): Report =>
  reportOf({ at: new Date(atS * 1000).toISOString(), span_s: 1, generation, figures });

const rate = (one: Report) => one.tuplesPerS;

test('a pause is a hole, and not a line', () => {
  const chart = chartOf([report(10, { tuples_per_second: 5 }), report(60, { tuples_per_second: 7 })], { in: rate });
  expect(chart.atS).toEqual([10, 11, 60]);
  expect(chart.series[0]?.values).toEqual([5, null, 7]);
});

test('a job that waited for long was there all the time', () => {
  const chart = chartOf([report(10, {}), report(60, { seconds: 50, tuples_per_second: 0 })], { in: rate });
  expect(chart.atS).toEqual([10, 60]);
});

test('between two batches that are far apart nothing came, and what is stored stayed', () => {
  const reports = [
    report(10, { tuples_per_second: 5, live_tuples: { r: 7 } }),
    report(40, { seconds: 1, quiet_seconds: 29, tuples_per_second: 9, live_tuples: { r: 8 } }),
  ];
  const chart = chartOf(reports, { in: rate });
  expect(chart.atS).toEqual([10, 11, 39, 40]);
  expect(chart.series[0]?.values).toEqual([5, 0, 0, 9]);
  expect(stateChart(reports).series[0]?.values).toEqual([7, 7, 7, 8]);
  expect(lagChart(reports).series).toEqual([]);
});

test('a figure that one report lacks is passed over, and the one before stands for it', () => {
  const batch = (one: Report) => one.batchMs.p50;
  const [series] = chartOf([report(1, { batch_ms: { p50: 7 } }), report(2, {}), report(60, {})], { p50: batch }).series;
  expect(series?.values).toEqual([7, undefined, null, undefined]);
  expect(series && [valueAt(series, 1), valueAt(series, 3)]).toEqual([7, null]);
});

test('another run is marked', () => {
  const reports = [report(1, {}, 1), report(2, {}, 1), report(3, {}, 2), report(4, {}, 2)];
  expect(chartOf(reports, { in: rate }).restartsS).toEqual([3]);
});

test('streams that keep up are shown by how far they are behind', () => {
  const chart = lagChart([report(1, { lag_ms: { r: 300 } }), report(2, { lag_ms: { r: 200, s: 900 } })]);
  expect(chart.replayedMs).toBeNull();
  expect(chart.series).toEqual([
    { label: 'r', values: [300, 200] },
    { label: 's', values: [undefined, 900] },
  ]);
});

test('streams that replay the past are shown by their drift', () => {
  const days = 3 * 86_400_000;
  const chart = lagChart([report(1, { lag_ms: { r: days + 40 } }), report(2, { lag_ms: { r: days } })]);
  expect(chart.replayedMs).toBe(days);
  expect(chart.series[0]?.values).toEqual([40, 0]);
});

test('a job that begins anew has a drift of its own, and one that goes on keeps it', () => {
  const days = 3 * 86_400_000;
  const minutes = 180_000;
  const reports = [
    report(1, { lag_ms: { r: days + 40 }, marks_us: { r: 5 } }, 1),
    report(2, { lag_ms: { r: days }, marks_us: { r: 9 } }, 1),
    report(3, { lag_ms: { r: days + 70 }, marks_us: { r: 9 } }, 2),
    report(180, { lag_ms: { r: days + minutes + 20 }, marks_us: { r: 4 } }, 3),
    report(181, { lag_ms: { r: days + minutes }, marks_us: { r: 5 } }, 3),
  ];
  const chart = lagChart(reports);
  expect(chart.replayedMs).toBe(days + minutes);
  expect(chart.series[0]?.values.filter((value) => value != null)).toEqual([40, 0, 70, 20, 0]);
});

test('over a long pause of one stream no line is drawn', () => {
  const lag = (atS: number, lag_ms: Record<string, number>) => report(atS, { lag_ms, seconds: 40 });
  const chart = lagChart([lag(1, { r: 5, s: 5 }), lag(40, { r: 5 }), lag(80, { r: 5, s: 7 }), lag(90, { r: 5 })]);
  expect(chart.series).toEqual([
    { label: 'r', values: [5, 5, 5, 5] },
    { label: 's', values: [5, null, 7, undefined] },
  ]);
});

test('state is drawn by stream, and a stream that was not there yet is passed over', () => {
  const chart = stateChart([report(1, { live_tuples: { r: 3 } }), report(2, { live_tuples: { r: 4, s: 9 } })]);
  expect(chart.series).toEqual([
    { label: 'r', values: [3, 4] },
    { label: 's', values: [undefined, 9] },
  ]);
});

test('what is left out is a rate, of all streams together', () => {
  const figures = { seconds: 2, late: { r: 4, s: 2 }, shed: { r: 10 }, dead_letters: {} };
  expect(leftOutChart([report(1, figures), report(2, { late: { r: 1 } })]).series).toEqual([
    { label: 'late', values: [3, undefined] },
    { label: 'shed', values: [5, undefined] },
    { label: 'unreadable', values: [0, undefined] },
  ]);
});

test('values without a neighbour are known: holes part lines, and what is passed over does not', () => {
  expect(alone([7])).toEqual([0]);
  expect(alone([undefined, 7, undefined, null, 8, undefined, 9, null, 0])).toEqual([1, 8]);
  expect(alone([7, 8])).toEqual([]);
  expect(alone([])).toEqual([]);
});

test('a chart is told in words', () => {
  expect(described({ label: 'in', values: [1_000, null, 4_000, 2_000] }, formatRate)).toBe(
    'in: now 2K/s, between 1K/s and 4K/s',
  );
  expect(described({ label: 'in', values: [null] }, formatRate)).toBe('in: nothing reported');
});
