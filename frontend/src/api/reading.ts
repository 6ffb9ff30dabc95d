/** How a relation is joined, measured and predicted, as drivers report it. */
import { isMapping, mapping, numberOrNull, numbers } from './mapping';

export interface Reading {
  /** Tuples joined per second of the units' own work; null if none were joined. */
  ratePerS: number | null;
  /** Rows of the relation read per tuple, and the share of tuples joined from the cache; null if the operator has neither. */
  rowsPerTuple: number | null;
  cachedShare: number | null;
  /** Memory the units use, and how much they may use; null if they may use any amount. */
  memoryBytes: number | null;
  allowedBytes: number | null;
  /** How many units are in each kind of round; null if the operator has no cache. */
  phases: { counting: number; switching: number; phasingOut: number } | null;
  predicted: Predicted | null;
}

/** What was predicted before the start. */
export interface Predicted {
  text: string;
  ratePerS: number | null;
  rowsPerTuple: number | null;
  cachedShare: number | null;
  /** The memory needed for a given rate. */
  memoryBytes: number | null;
  problem: string | null;
}

function predictedOf(value: unknown): Predicted | null {
  const given = mapping(value);
  if (typeof given.text !== 'string') return null;
  return {
    text: given.text,
    ratePerS: numberOrNull(given.rate_per_s),
    rowsPerTuple: numberOrNull(given.rows_read_per_tuple),
    cachedShare: numberOrNull(given.cached_share),
    memoryBytes: numberOrNull(given.memory_bytes),
    problem: typeof given.problem === 'string' ? given.problem : null,
  };
}

export function readingOf(value: unknown): Reading | null {
  if (!isMapping(value)) return null;
  const holding = numbers(value.holding);
  const { units_counting: counting, units_switching: switching, units_phasing_out: phasingOut } = holding;
  return {
    ratePerS: numberOrNull(value.rate_per_s),
    rowsPerTuple: numberOrNull(value.rows_read_per_tuple),
    cachedShare: numberOrNull(value.cached_share),
    memoryBytes: holding.memory_bytes ?? null,
    allowedBytes: holding.memory_bytes_allowed ?? null,
    phases:
      counting === undefined ? null : { counting, switching: switching ?? 0, phasingOut: phasingOut ?? 0 },
    predicted: predictedOf(value.predicted),
  };
}
