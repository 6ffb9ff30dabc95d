/** What a failed job says of its failure. */
import type { Job } from '../../api/types';

export interface Failure {
  generation: number;
  cause: string;
  /** When it was seen; null while the next generation is on its way. */
  since: string | null;
  /** What comes next by itself. */
  next: string;
}

type Seen = Pick<Job, 'wanted' | 'observed' | 'observed_since' | 'phase' | 'generation' | 'failures' | 'reason'>;

/** Null for a job that has not failed, or has got over it. */
export function failureOf(job: Seen): Failure | null {
  const isFailed = job.observed === 'failed';
  const isTriedAgain = job.observed === 'starting' && job.failures > 0;
  if (job.reason === null || job.wanted === 'deleted' || !(isFailed || isTriedAgain)) return null;
  return {
    generation: isFailed ? job.generation : job.generation - 1,
    cause: job.reason,
    since: isFailed ? job.observed_since : null,
    next: isTriedAgain ? `Generation ${String(job.generation)} is starting.` : nextOf(job),
  };
}

/** Nothing where the platform has given the job up: then its reason says so, and the way out. */
function nextOf({ wanted, phase }: Seen): string {
  if (wanted !== 'running') return 'It stays stopped until somebody starts it.';
  return phase === 'failed' ? '' : 'It is tried again by itself, after a longer pause each time.';
}
