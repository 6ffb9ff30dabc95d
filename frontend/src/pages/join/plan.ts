/** An explanation's plan, read out of the open mapping that the API gives. */
import type { Explanation } from '../../api/types';

export interface Option {
  name: string;
  /** Why it cannot run the query; null where it can. */
  refusal: string | null;
  memoryBytes: number | null;
  replication: number | null;
  comparisonsPerS: number | null;
  bytesPerS: number | null;
}

export interface Plan {
  operator: string;
  /** With which units and knobs it would run, such as "hash routing, 2 units store R and 2 store S". */
  described: string;
  /** Tuples of both streams that arrive in a second of event time, as they were sampled; null where nothing was. */
  arrivingPerS: number | null;
  reason: string;
  window: string;
  /** Nothing bounds what is kept. */
  stateGrows: boolean;
  /** By how much it grows then; null where that was not to be sampled. */
  stateBytesPerHour: number | null;
  main: string;
  residual: string[];
  options: Option[];
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const figure = (value: unknown): number | null => (typeof value === 'number' ? value : null);

function optionOf(value: unknown): Option {
  const given = value as Record<string, unknown>;
  return {
    name: text(given.name),
    refusal: typeof given.refusal === 'string' ? given.refusal : null,
    memoryBytes: figure(given.memory_bytes),
    replication: figure(given.replication),
    comparisonsPerS: figure(given.comparisons_per_s),
    bytesPerS: figure(given.bytes_per_s),
  };
}

function arriving(sampled: unknown): number | null {
  if (typeof sampled !== 'object' || sampled === null) return null;
  const rates = Object.values(sampled).map((of: Record<string, unknown>) => figure(of.tuples_per_s) ?? NaN);
  const sum = rates.reduce((all, rate) => all + rate, 0);
  return sum > 0 ? sum : null;
}

export function planOf({ plan }: Explanation): Plan {
  return {
    operator: text(plan.operator),
    described: text(plan.described).split(', ').slice(1).join(', '),
    arrivingPerS: arriving(plan.sampled),
    reason: text(plan.reason),
    window: text(plan.window),
    stateGrows: plan.state_grows === true,
    stateBytesPerHour: figure(plan.state_bytes_per_hour),
    main: text(plan.main),
    residual: Array.isArray(plan.residual) ? plan.residual.map(text) : [],
    options: Array.isArray(plan.operators) ? plan.operators.map(optionOf) : [],
  };
}
