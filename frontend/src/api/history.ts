/** A job's reports over time, fetched piece by piece: only what is new is asked for. */
import type { Report } from './figures';

export interface History {
  reports: Report[];
  /** The browser's clock when it was last asked, in milliseconds. */
  askedMs: number;
}

/** Reports are written up to a second after their span; what is asked for overlaps by more than that. */
const OVERLAP_S = 10;

/** With more of them all are asked for again, because the platform has merged the old ones by then. */
const REPORTS_MAX = 4_000;

/** How many minutes to ask for, given what is known. */
export function minutesToAsk(known: History | undefined, nowMs: number, keptMinutes: number): number {
  if (known === undefined || known.reports.length > REPORTS_MAX) return keptMinutes;
  return Math.min(keptMinutes, ((nowMs - known.askedMs) / 1000 + OVERLAP_S) / 60);
}

/** Units are shown as they are now: hundreds of them for each second of a day would fill the page's memory. */
const withoutUnits = (report: Report, place: number, all: Report[]): Report =>
  place === all.length - 1 || report.units.length === 0 ? report : { ...report, units: [] };

/** What is known with what is new; reports older than `keptMinutes` before the newest are let go. */
export function joined(known: Report[], news: Report[], keptMinutes: number): Report[] {
  const first = news[0];
  if (first === undefined) return known;
  // The news replace what they overlap: reports are merged into longer ones as they age.
  const all = [...known.filter((report) => report.atS < first.atS), ...news];
  const newestS = all[all.length - 1]?.atS ?? 0;
  return all.filter((report) => report.atS > newestS - keptMinutes * 60).map(withoutUnits);
}
