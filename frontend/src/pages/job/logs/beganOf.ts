/** When each generation of a job began, out of its events. */
import type { Event } from '../../../api/types';
import type { Began } from './lines';

const KINDS = new Set(['job.starting', 'job.restarted']);

/** Oldest first. */
export function beganOf(events: Event[]): Began[] {
  const began = events.flatMap(({ kind, at, data }): Began[] =>
    KINDS.has(kind) && at !== null && typeof data.generation === 'number'
      ? [{ generation: data.generation, atMs: Date.parse(at) }]
      : [],
  );
  return began.sort((one, other) => one.atMs - other.atMs);
}
