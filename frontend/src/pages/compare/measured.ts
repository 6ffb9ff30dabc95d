/** What a running job measures of what its operator was predicted to cost. */
import { total, type Report } from '../../api/figures';
import type { Job } from '../../api/types';

export interface Measured {
  tuplesPerS: number;
  batchMs: number | null;
  stateBytes: number;
  replication: number | null;
  comparisonsPerS: number | null;
  comparisonsPerTuple: number | null;
}

export function measuredOf(report: Report): Measured {
  const tuples = total(report.tuples);
  const received = report.units.reduce((sum, unit) => sum + unit.received, 0);
  return {
    tuplesPerS: report.tuplesPerS,
    batchMs: report.batchMs.p50,
    stateBytes: report.stateBytes,
    replication: tuples > 0 ? received / tuples : null,
    comparisonsPerS: report.seconds > 0 ? report.comparisons / report.seconds : null,
    comparisonsPerTuple: tuples > 0 ? report.comparisons / tuples : null,
  };
}

/** So many are asked for their figures. */
const JOBS_MAX = 6;

/** The running jobs over the same streams, in whichever order a query names them. */
export function runningOver(jobs: readonly Job[], streams: readonly string[]): Job[] {
  const wanted = [...streams].sort().join('\n');
  if (streams.length === 0) return [];
  return jobs
    .filter((job) => job.phase === 'running' && [...job.streams].sort().join('\n') === wanted)
    .slice(0, JOBS_MAX);
}

/** The operator that a job runs: `auto` stands for another one. */
export function runsBy({ operator }: Pick<Job, 'operator'>, auto: string): string {
  const name = typeof operator.name === 'string' ? operator.name : 'auto';
  return name === 'auto' ? auto : name;
}
