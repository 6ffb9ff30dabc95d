/** What units can be compared by. Counts are of a report's span, so they are shown as rates. */
import type { Report, Unit } from '../../../api/figures';
import { formatBytes, formatRate, formatRatio, formatShort } from '../../../format';

export interface Measure {
  label: string;
  of: (unit: Unit, seconds: number) => number | null;
  format: (value: number | null) => string;
}

const perSecond = (count: (unit: Unit) => number) => (unit: Unit, seconds: number) =>
  seconds > 0 ? count(unit) / seconds : null;

export const MEASURES = {
  received: { label: 'Received', of: perSecond((unit) => unit.received), format: formatRate },
  stored: { label: 'Stored', of: (unit: Unit) => unit.storedRows, format: formatShort },
  bytes: { label: 'Memory', of: (unit: Unit) => unit.storedBytes, format: formatBytes },
  comparisons: { label: 'Comparisons', of: perSecond((unit) => unit.comparisons), format: formatRate },
  rho: {
    label: 'ρ, results by what is looked at',
    of: (unit: Unit) => {
      const lookedAt = unit.comparisons + unit.searchSteps;
      return lookedAt > 0 ? unit.results / lookedAt : null;
    },
    format: formatRatio,
  },
  results: { label: 'Results', of: perSecond((unit) => unit.results), format: formatRate },
} satisfies Record<string, Measure>;

export type MeasureName = keyof typeof MEASURES;

export interface Measured {
  values: (number | null)[];
  most: number;
  /** How many times the mean the largest is; null where there is nothing. */
  skew: number | null;
  /** The place of the largest; -1 where there is none. */
  peak: number;
}

export function measured(report: Pick<Report, 'units' | 'seconds'>, measure: Measure): Measured {
  const values = report.units.map((unit) => measure.of(unit, report.seconds));
  let [most, sum, known, peak] = [0, 0, 0, -1];
  values.forEach((value, place) => {
    if (value === null) return;
    known += 1;
    sum += value;
    if (peak < 0 || value > most) [most, peak] = [value, place];
  });
  return { values, most, peak, skew: sum > 0 ? most / (sum / known) : null };
}
