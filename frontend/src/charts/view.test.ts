import { expect, test } from 'vitest';
import type { ChartData } from './series';
import { allOf, ceilingOf, moved, scaled, within } from './view';

const ALL = { zoom: null, isLog: false };
const chart = (values: (number | null)[], from = 0): ChartData => ({
  atS: values.map((_, place) => from + place),
  series: [{ label: 'in', values }],
  restartsS: [],
});
const steady = Array.from({ length: 100 }, (_, place) => 900 + (place % 7));

test('a spike is cut off, and told with its value and time', () => {
  const values = [...steady];
  values[3] = 62_100;
  expect(ceilingOf(chart(values), ALL)).toEqual({ value: 906 * 1.5, cut: { value: 62_100, atS: 3 } });
});

test('a log scale, a part without the spike and lines without one have all their room', () => {
  const values = [...steady];
  values[3] = 62_100;
  expect(ceilingOf(chart(values), { zoom: null, isLog: true })).toEqual({ value: 62_100, cut: null });
  expect(ceilingOf(chart(values), { zoom: { fromS: 50, toS: 90 }, isLog: false })).toEqual({ value: 906, cut: null });
  expect(ceilingOf(chart(steady), ALL)).toEqual({ value: 906, cut: null });
});

test('few values have no spike, and zeros and holes do not make one of what is between them', () => {
  expect(ceilingOf(chart([1, 1, 500]), ALL).cut).toBeNull();
  const bursts = Array.from({ length: 200 }, (_, place) => (place % 10 === 0 ? 400 : place % 2 === 0 ? 0 : null));
  expect(ceilingOf(chart(bursts), ALL)).toEqual({ value: 400, cut: null });
  expect(ceilingOf(chart([0, null]), ALL)).toEqual({ value: 1, cut: null });
});

test('a part of the time stays in it, as long as it is', () => {
  const all = allOf(chart(steady, 1000));
  expect(all).toEqual({ fromS: 1000, toS: 1099 });
  expect(within(all, { fromS: 1010, toS: 1020 })).toEqual({ fromS: 1010, toS: 1020 });
  expect(within(all, { fromS: 990, toS: 1010 })).toEqual({ fromS: 1000, toS: 1020 });
  expect(within(all, { fromS: 1090, toS: 1110 })).toEqual({ fromS: 1079, toS: 1099 });
  expect(within(all, { fromS: 1010, toS: 1011 })).toEqual({ fromS: 1010, toS: 1015 });
  expect(within(all, { fromS: 900, toS: 1000 })).toBeNull();
  expect(within(all, { fromS: 990, toS: 1200 })).toBeNull();
  expect(allOf(chart([1, 2]))).toBeNull();
});

test('it is halved, doubled and moved', () => {
  expect(scaled({ fromS: 0, toS: 40 }, 0.5)).toEqual({ fromS: 10, toS: 30 });
  expect(scaled({ fromS: 10, toS: 30 }, 2)).toEqual({ fromS: 0, toS: 40 });
  expect(moved({ fromS: 10, toS: 30 }, -0.5)).toEqual({ fromS: 0, toS: 20 });
});
