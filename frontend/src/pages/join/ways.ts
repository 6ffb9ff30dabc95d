/** The ways to join three streams and more, read out of an explanation's open mapping. */
import { formatSeconds } from '../../format';

export interface Way {
  /** What is joined with what, such as `((a, b), c)`. */
  plan: string;
  /** What to write under operator to have it. */
  setting: string;
  /** The same, by the names of the fields. */
  operator: Record<string, unknown>;
  runs: boolean;
  memoryBytes: number;
  comparisonsPerS: number;
  lookedAtPerS: number;
  bytesPerS: number;
  /** Seconds that one processor is busy, in a second of event time. */
  workS: number;
  /** Rows of all streams that it can take, with its slots always busy. */
  ratePerS: number;
  /** Seconds until a row that waits for no other has met all, on average. */
  responseS: number;
}

export interface Ways {
  advice: string;
  /** With the least work first. */
  found: Way[];
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const figure = (value: unknown): number => (typeof value === 'number' ? value : NaN);

function wayOf(given: Record<string, unknown>): Way {
  return {
    plan: text(given.plan),
    setting: text(given.setting),
    operator: typeof given.operator === 'object' ? { ...given.operator } : {},
    runs: given.runs === true,
    memoryBytes: figure(given.memory_bytes),
    comparisonsPerS: figure(given.comparisons_per_s),
    lookedAtPerS: figure(given.looked_at_per_s),
    bytesPerS: figure(given.bytes_per_s),
    workS: figure(given.work_s),
    ratePerS: figure(given.rate_per_s),
    responseS: figure(given.response_s),
  };
}

/** Null where there is one way alone, or nothing is known of the streams. */
export function waysOf(value: unknown): Ways | null {
  if (typeof value !== 'object' || value === null) return null;
  const given = value as Record<string, unknown>;
  if (!Array.isArray(given.ways)) return null;
  return { advice: text(given.advice), found: given.ways.map((way) => wayOf(way as Record<string, unknown>)) };
}

/** A tree as a join file has it, such as `[[a, b], c]`. */
export const treeText = (tree: unknown): string =>
  Array.isArray(tree) ? `[${tree.map(treeText).join(', ')}]` : text(tree);

/** The fields of a form that have a way; of a tree, with the operator that its stages are run by. */
export function fieldsOfWay(way: Pick<Way, 'operator'>, stagesBy: string): Record<string, string> {
  const { name, tree, orders } = way.operator;
  return {
    'operator.name': text(name) || stagesBy,
    'operator.tree': treeText(tree),
    'operator.orders': orders === undefined ? '' : JSON.stringify(orders),
  };
}

export const workWords = (seconds: number): string => `${formatSeconds(seconds)}/s`;
