import { expect, test } from 'vitest';
import { reportOf, type Report } from './figures';
import { joined, minutesToAsk } from './history';

const at = (atS: number, spanS = 1): Report =>
  reportOf({ at: new Date(atS * 1000).toISOString(), span_s: spanS, generation: 1, figures: {} });

const times = (reports: Report[]) => reports.map((report) => report.atS);

test('all of it is asked for first, and then only what is new', () => {
  expect(minutesToAsk(undefined, 0, 15)).toBe(15);
  expect(minutesToAsk({ reports: [], askedMs: 100_000 }, 102_000, 15)).toBeCloseTo(0.2);
  expect(minutesToAsk({ reports: [], askedMs: 0 }, 3_600_000, 15)).toBe(15);
});

test('news replace what they overlap, because reports are merged as they age', () => {
  const known = [at(10), at(11), at(12), at(13)];
  expect(times(joined(known, [at(12, 10), at(14)], 15))).toEqual([10, 11, 12, 14]);
  expect(joined(known, [], 15)).toBe(known);
});

test('what is older than the chart is let go', () => {
  expect(times(joined([at(0), at(50), at(61)], [at(100)], 1))).toEqual([50, 61, 100]);
});

test('units are kept of the newest report only', () => {
  const withUnits = (atS: number) =>
    reportOf({ at: new Date(atS * 1000).toISOString(), span_s: 1, generation: 1, figures: { units: [{ unit: 0 }] } });
  const reports = joined([withUnits(10)], [withUnits(11), withUnits(12)], 15);
  expect(reports.map((report) => report.units.length)).toEqual([0, 0, 1]);
});

test('a page that was open for long asks for all of it again, merged', () => {
  const reports = Array.from({ length: 4_001 }, (_, second) => at(second));
  expect(minutesToAsk({ reports, askedMs: 0 }, 2_000, 1_440)).toBe(1_440);
});

test('figures that are missing or of another type are read as none', () => {
  const report = reportOf({
    at: null,
    span_s: 1,
    generation: 2,
    figures: { rho: 'much', batch_ms: null, units: [{ unit: 3, label: 'R0', stored_rows: null }], lag_ms: { r: 5 } },
  });
  expect(report.rho).toBeNull();
  expect(report.batchMs.p95).toBeNull();
  expect(report.units[0]).toMatchObject({ unit: 3, label: 'R0', storedRows: 0 });
  expect(report.lagMs).toEqual({ r: 5 });
});
