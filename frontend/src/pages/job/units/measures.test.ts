import { expect, test } from 'vitest';
import { reportOf } from '../../../api/figures';
import { measured, MEASURES } from './measures';

const report = reportOf({
  at: null,
  span_s: 1,
  generation: 1,
  figures: {
    seconds: 2,
    units: [
      { unit: 0, label: 'R0', received: 10, comparisons: 1, search_steps: 3, results: 1, stored_bytes: 5 },
      { unit: 1, label: 'R1', received: 30, comparisons: 0, results: 0, stored_bytes: 5 },
    ],
  },
});

test('counts of a span are rates, and the largest is compared with the mean', () => {
  expect(measured(report, MEASURES.received)).toEqual({ values: [5, 15], most: 15, skew: 1.5, peak: 1 });
});

test('rho is of comparisons and search steps; a unit that looked at nothing has none, and is not part of the mean', () => {
  expect(measured(report, MEASURES.rho)).toEqual({ values: [0.25, null], most: 0.25, skew: 1, peak: 0 });
});

test('equal units, no units, and a span of no length', () => {
  expect(measured(report, MEASURES.bytes)).toMatchObject({ skew: 1, peak: 0 });
  expect(measured({ units: [], seconds: 1 }, MEASURES.bytes)).toEqual({ values: [], most: 0, skew: null, peak: -1 });
  expect(measured({ units: report.units, seconds: 0 }, MEASURES.received)).toMatchObject({ skew: null, peak: -1 });
});
