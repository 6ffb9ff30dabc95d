/** What drivers report, read out of the open mapping that the API gives. Unknown or missing figures become null. */
import { decisionsOf, unitsNowOf, type Decision, type UnitsNow } from './adaptive';
import { isMapping, mapping, number, numberOrNull, numbers, type Fields } from './mapping';
import { readingOf, type Reading } from './reading';
import { stagesOf, type PlanStage } from './stages';
import type { Point } from './types';

export interface Unit {
  unit: number;
  label: string;
  /** The number of its stage, from 1. */
  stage: number;
  comparisons: number;
  /** Places of an index that were looked at; 0 in reports of older drivers. */
  searchSteps: number;
  results: number;
  received: number;
  storedRows: number;
  storedBytes: number;
  segments: number;
  late: number;
}

/** A stage of the plan, and how many rows it found. */
export interface Stage extends PlanStage {
  results: number;
  openRows: number;
}

/** Counts are of the span; what is live is of its end. Times in milliseconds, `atS` in seconds since 1970. */
export interface Report {
  atS: number;
  spanS: number;
  generation: number;
  tuplesPerS: number;
  resultsPerS: number;
  rho: number | null;
  results: number;
  comparisons: number;
  batchMs: { p50: number | null; p95: number | null; max: number | null };
  lagMs: Record<string, number>;
  marksUs: Record<string, number | null>;
  tuples: Record<string, number>;
  liveTuples: Record<string, number>;
  late: Record<string, number>;
  deadLetters: Record<string, number>;
  shed: Record<string, number>;
  nullKeys: Record<string, number>;
  /** Rows that wait at the end of the span until it is known whether they are matched. */
  openRows: number;
  /** Rows that left as unmatched. */
  unmatchedRows: number;
  /** Pairs that were none, as a row of theirs had left as unmatched before. */
  lateAfterFinal: number;
  /** Starts of the query, inside its driver, after a Python worker did not connect to Spark in time. */
  reconnects: number;
  /** Reports that could not be written before this one. */
  droppedReports: number;
  stateBytes: number;
  /** The length of the span. */
  seconds: number;
  /** How long there was no batch before it. */
  quietSeconds: number;
  /** Of the whole run until then; null in reports that do not tell. */
  totals: { tuples: number; results: number } | null;
  /** Streams to which nothing can be added. */
  bounded: string[];
  /** Of the plan; none in reports that do not tell. */
  stages: Stage[];
  units: Unit[];
  /** Of joins whose units come and go; none where units stay. */
  adaptive: UnitsNow[];
  /** What was decided about units in the span. */
  decisions: Decision[];
  /** Null where nobody chose an order of joins by rates. */
  order: Order | null;
  /** Why rows of streams are late whose files are read in another order than that of their numbers. */
  lateFiles: string[];
  /** Of joins with relations; null of others. */
  reading: Reading | null;
  /** Blocks, tuples and bytes that units handed on to one another; null where they do not. */
  forwarded: Record<string, number> | null;
  /** By stream, ESJ's IF among these units at the end of the span. */
  imbalance: Record<string, number>;
  /** With the store of the job's state; null where that is in a folder. */
  stateTraffic: Record<string, number> | null;
}

/** The order of joins that `auto` chose, and what rates have come to since. */
export interface Order {
  text: string;
  /** A way with clearly less work now, and what a change of the job says to have it. */
  better: { plan: string; operator: Record<string, unknown> } | null;
}

const marks = (value: unknown): Record<string, number | null> =>
  Object.fromEntries(Object.entries(mapping(value)).map(([name, one]) => [name, numberOrNull(one)]));

function unitOf(value: unknown): Unit {
  const unit = mapping(value);
  return {
    unit: number(unit.unit),
    label: typeof unit.label === 'string' ? unit.label : '',
    stage: numberOrNull(unit.stage) ?? 1,
    comparisons: number(unit.comparisons),
    searchSteps: number(unit.search_steps),
    results: number(unit.results),
    received: number(unit.received),
    storedRows: number(unit.stored_rows),
    storedBytes: number(unit.stored_bytes),
    segments: number(unit.segments),
    late: number(unit.late),
  };
}

function orderOf(value: unknown): Order | null {
  const { text, better } = mapping(value);
  if (typeof text !== 'string') return null;
  const { plan, operator } = mapping(better);
  return { text, better: typeof plan === 'string' ? { plan, operator: mapping(operator) } : null };
}

/** A driver of another version may have written what the API describes otherwise. */
type Reported = Omit<Point, 'figures'> & { figures: Fields };

export function reportOf(point: Reported): Report {
  const { figures } = point;
  const batch = mapping(figures.batch_ms);
  return {
    atS: point.at === null ? 0 : Date.parse(point.at) / 1000,
    spanS: point.span_s,
    generation: point.generation,
    tuplesPerS: number(figures.tuples_per_second),
    resultsPerS: number(figures.results_per_second),
    rho: numberOrNull(figures.rho),
    results: number(figures.results),
    comparisons: number(figures.comparisons),
    batchMs: { p50: numberOrNull(batch.p50), p95: numberOrNull(batch.p95), max: numberOrNull(batch.max) },
    lagMs: numbers(figures.lag_ms),
    marksUs: marks(figures.marks_us),
    tuples: numbers(figures.tuples),
    liveTuples: numbers(figures.live_tuples),
    late: numbers(figures.late),
    deadLetters: numbers(figures.dead_letters),
    shed: numbers(figures.shed),
    nullKeys: numbers(figures.null_keys),
    openRows: number(figures.open_rows),
    unmatchedRows: number(figures.unmatched_rows),
    lateAfterFinal: number(figures.late_after_final),
    reconnects: number(figures.reconnects),
    droppedReports: number(figures.dropped_reports),
    stateBytes: number(figures.state_bytes),
    seconds: number(figures.seconds),
    quietSeconds: number(figures.quiet_seconds),
    totals: isMapping(figures.totals)
      ? { tuples: number(figures.totals.tuples), results: number(figures.totals.results) }
      : null,
    bounded: Array.isArray(figures.bounded) ? figures.bounded.filter((name) => typeof name === 'string') : [],
    stages: stagesOf(figures.stages, (stage) => ({ results: number(stage.results), openRows: number(stage.open_rows) })),
    units: Array.isArray(figures.units) ? figures.units.map(unitOf) : [],
    adaptive: unitsNowOf(figures.adaptive),
    decisions: decisionsOf(figures.decisions),
    order: orderOf(figures.order),
    lateFiles: Object.values(mapping(figures.late_files)).filter((said) => typeof said === 'string'),
    reading: readingOf(figures.reading),
    forwarded: isMapping(figures.forwarded) ? numbers(figures.forwarded) : null,
    imbalance: numbers(figures.imbalance),
    stateTraffic: isMapping(figures.state_traffic) ? numbers(figures.state_traffic) : null,
  };
}

export const total = (counts: Record<string, number>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

/** What is so while no batch runs after a report: nothing comes, and what is stored stays. */
export const quietAfter = (report: Report, atS: number): Report => ({
  ...report,
  atS,
  tuplesPerS: 0,
  resultsPerS: 0,
  rho: null,
  results: 0,
  comparisons: 0,
  batchMs: { p50: null, p95: null, max: null },
  lagMs: {},
  stages: report.stages.map((stage) => ({ ...stage, results: 0 })),
  tuples: {},
  late: {},
  deadLetters: {},
  shed: {},
  nullKeys: {},
  forwarded: report.forwarded && {},
  decisions: [],
  unmatchedRows: 0,
  lateAfterFinal: 0,
  reconnects: 0,
});
