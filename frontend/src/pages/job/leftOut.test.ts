import { expect, test } from 'vitest';
import { reportOf } from '../../api/figures';
import { figuresOf, isApproximate, leftOutOf, missingReports, missingWords } from './leftOut';

const report = (figures: Record<string, unknown>) =>
  reportOf({ at: '2026-01-01T00:00:00Z', span_s: 1, generation: 1, figures });

const REPORTS = [
  report({ late: { r: 2, s: 0 }, shed: { r: 0 }, dead_letters: { s: 1 }, dropped_reports: 3 }),
  report({ seconds: 2, tuples: { r: 10, s: 0 }, late: { r: 1, s: 4 }, shed: { r: 0 }, marks_us: { r: 5, s: null } }),
];

test('what was left out is counted over all reports, by stream and together', () => {
  expect(leftOutOf(REPORTS)).toEqual({ late: 7, shed: 0, unreadable: 1, nullKeys: 0 });
  const [r, s] = figuresOf(['a'], REPORTS, true);
  expect(r).toMatchObject({ name: 'r', late: 3, unreadable: 0, tuplesPerS: 5, markUs: 5 });
  expect(s).toMatchObject({ name: 's', late: 4, unreadable: 1, tuplesPerS: 0, markUs: null });
  expect(missingReports(REPORTS)).toBe(3);
});

test('only what is missing is told', () => {
  expect(missingWords({ late: 0, shed: 40_000, unreadable: 1, nullKeys: 9 })).toBe('40,000 shed, 1 unreadable');
  expect(missingWords({ late: 0, shed: 0, unreadable: 0, nullKeys: 9 })).toBe('');
});

test('rates are of now, so a job that does not run has none', () => {
  expect(figuresOf([], REPORTS, false)[0]).toMatchObject({ tuplesPerS: null, lagMs: null, late: 3 });
});

test('before anything is reported the streams are there, without figures', () => {
  expect(figuresOf(['a', 'b'], [], true)).toMatchObject([
    { name: 'a', tuplesPerS: null, late: 0 },
    { name: 'b', live: null },
  ]);
});

test('one shed tuple makes the results approximate', () => {
  expect(isApproximate(REPORTS)).toBe(false);
  expect(isApproximate([...REPORTS, report({ shed: { r: 0, s: 1 } })])).toBe(true);
});
