/** Tuples that are missing from the results, counted over reports: what could hide behind a good rate. */
import { total, type Report } from '../../api/figures';
import { formatCount } from '../../format';

export interface LeftOut {
  late: number;
  shed: number;
  unreadable: number;
  nullKeys: number;
}

export interface StreamFigures extends LeftOut {
  name: string;
  /** Null where the job does not run. */
  tuplesPerS: number | null;
  lagMs: number | null;
  markUs: number | null;
  live: number | null;
}

type Counts = (report: Report) => Record<string, number>;

const COUNTS: Record<keyof LeftOut, Counts> = {
  late: (report) => report.late,
  shed: (report) => report.shed,
  unreadable: (report) => report.deadLetters,
  nullKeys: (report) => report.nullKeys,
};

const summed = (reports: Report[], of: (counts: Record<string, number>) => number): LeftOut => {
  const sum = (counts: Counts) => reports.reduce((all, report) => all + of(counts(report)), 0);
  return {
    late: sum(COUNTS.late),
    shed: sum(COUNTS.shed),
    unreadable: sum(COUNTS.unreadable),
    nullKeys: sum(COUNTS.nullKeys),
  };
};

export const leftOutOf = (reports: Report[]): LeftOut => summed(reports, total);

/** Such as "3 late, 40 shed"; empty where nothing is missing. */
export function missingWords({ late, shed, unreadable }: LeftOut): string {
  const counts = Object.entries({ late, shed, unreadable }).filter(([, count]) => count > 0);
  return counts.map(([why, count]) => `${formatCount(count)} ${why}`).join(', ');
}

/** A stream may drop tuples under load: then some results are missing, and sums over them are too small. */
export const isApproximate = (reports: Report[]): boolean => reports.some((report) => total(report.shed) > 0);

/** Reports that could not be written, so that charts have less than was. */
export const missingReports = (reports: Report[]): number =>
  reports.reduce((sum, report) => sum + report.droppedReports, 0);

/** Starts of the query again, inside its driver: nothing is lost by them. */
export const reconnects = (reports: Report[]): number => reports.reduce((sum, report) => sum + report.reconnects, 0);

/**
 * @param streams names to show before anything was reported.
 * @param isRunning whether the newest report is of now.
 */
export function figuresOf(streams: string[], reports: Report[], isRunning: boolean): StreamFigures[] {
  const newest = reports.at(-1);
  const names = newest === undefined ? [] : Object.keys(newest.tuples);
  return (names.length > 0 ? names : streams).map((name) => ({
    name,
    tuplesPerS: isRunning && newest && newest.seconds > 0 ? (newest.tuples[name] ?? 0) / newest.seconds : null,
    lagMs: isRunning ? (newest?.lagMs[name] ?? null) : null,
    markUs: newest?.marksUs[name] ?? null,
    live: newest?.liveTuples[name] ?? null,
    ...summed(reports, (counts) => counts[name] ?? 0),
  }));
}
