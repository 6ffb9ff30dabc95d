/** Whether anything still comes in: without input rates are zero, and what is stored does not pass out of its window. */
import { total, type Report } from '../../api/figures';
import type { Job } from '../../api/types';
import type { Times } from '../../times';

export interface Input {
  /** `finished`: nothing can be added to any of the streams, or the job has reached their end. */
  kind: 'coming' | 'silent' | 'finished';
  /** When the last tuples came, in seconds since 1970; null if that was before all reports. */
  sinceS: number | null;
}

/** A live job looks for input all the time, and reports of it at least every few seconds until it rests. */
const SILENT_S = 5;

/** With this reason a job stops by itself. */
const AT_END = 'reached the end';

/** Whether a job runs, or is to: what it does is followed as long. */
export const isLive = ({ wanted, observed }: Pick<Job, 'wanted' | 'observed'>): boolean =>
  wanted === 'running' || observed !== 'stopped';

/** Whether a job was to run until the end of its streams, and has. */
export const hasEnded = ({ observed, reason }: Pick<Job, 'observed' | 'reason'>): boolean =>
  observed === 'stopped' && reason === AT_END;

/** One word for how a job is; a job that is done did not just stop. */
export const phaseOf = (job: Pick<Job, 'observed' | 'reason' | 'phase'>): string =>
  hasEnded(job) ? 'finished' : job.phase;

export function inputOf(job: Pick<Job, 'observed' | 'reason' | 'phase'>, reports: Report[]): Input {
  const newest = reports.at(-1);
  const last = reports.findLast((report) => total(report.tuples) > 0);
  const sinceS = last?.atS ?? null;
  if (hasEnded(job)) return { kind: 'finished', sinceS };
  if (job.phase !== 'running' || newest === undefined) return { kind: 'coming', sinceS };
  const beganS = reports.reduce((first, one) => Math.min(first, one.atS - one.seconds - one.quietSeconds), Infinity);
  if (newest.atS - (sinceS ?? beganS) < SILENT_S) return { kind: 'coming', sinceS };
  const isOver = Object.keys(newest.tuples).every((name) => newest.bounded.includes(name));
  return { kind: isOver ? 'finished' : 'silent', sinceS };
}

/** Such as "the last tuples came at 12:00:05". */
export const inputWords = ({ sinceS }: Input, times: Times): string =>
  sinceS === null ? 'no tuples came in the time that is shown' : `the last tuples came at ${times.clock(sinceS)}`;
