/** An explanation's plan, read out of the open mapping that the API gives. */
import { mapping } from '../../api/mapping';
import { stagesOf, type PlanStage } from '../../api/stages';
import type { Explanation } from '../../api/types';
import { waysOf, type Ways } from './ways';

/** Where an operator stops scaling. */
export interface Growth {
  /** The most slots of which each brings enough; null where that is beyond 4,096. */
  slots: number | null;
  /** What takes the time beyond. */
  most: string;
}

export interface Option {
  name: string;
  /** Why it cannot run the query; null where it can. */
  refusal: string | null;
  memoryBytes: number | null;
  replication: number | null;
  comparisonsPerS: number | null;
  bytesPerS: number | null;
  /** What the unit gets that gets most: the papers' In. */
  busiestBytesPerS: number | null;
  /** How many slots are useful; null where no model tells. */
  growth: Growth | null;
  /** What is predicted of an operator that joins a relation; null of all others. */
  reading: string | null;
}

/** How one stage of a plan is run. */
export interface Stage extends PlanStage {
  operator: string;
  conditions: string[];
  /** How each input is laid out; none where groups are made. */
  index: string[];
  /** What groups are made by; null at a stage that joins. */
  groups: string | null;
}

export interface Plan {
  operator: string;
  /** With which units and knobs it would run, such as "hash routing, 2 units store R and 2 store S". */
  described: string;
  /** Tuples of all streams that arrive in a second of event time, as they were sampled; null where nothing was. */
  arrivingPerS: number | null;
  reason: string;
  /** Of three streams and more, who says in which order they are joined, and why; else empty. */
  order: string;
  window: string;
  /** Nothing bounds what is kept. */
  stateGrows: boolean;
  /** By how much it grows then; null where that was not to be sampled. */
  stateBytesPerHour: number | null;
  main: string;
  residual: string[];
  stages: Stage[];
  /** Tuples of each stream in a second of event time, as they were sampled. */
  ratesPerS: Record<string, number>;
  /** Why the rate of a stream is not known, by stream that was asked for it. */
  unknownRates: Record<string, string>;
  options: Option[];
  /** To join three streams and more; null where there is one alone, or nothing is known of the streams. */
  ways: Ways | null;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const figure = (value: unknown): number | null => (typeof value === 'number' ? value : null);

function growthOf(value: unknown): Growth | null {
  if (typeof value !== 'object' || value === null) return null;
  const given = value as Record<string, unknown>;
  return { slots: figure(given.slots), most: text(given.most) };
}

function optionOf(value: unknown, readings: unknown): Option {
  const given = value as Record<string, unknown>;
  const reading = (readings as Record<string, { text?: unknown }> | undefined)?.[text(given.name)]?.text;
  return {
    name: text(given.name),
    refusal: typeof given.refusal === 'string' ? given.refusal : null,
    memoryBytes: figure(given.memory_bytes),
    replication: figure(given.replication),
    comparisonsPerS: figure(given.comparisons_per_s),
    bytesPerS: figure(given.bytes_per_s),
    busiestBytesPerS: figure(given.busiest_bytes_per_s),
    growth: growthOf(given.growth),
    reading: typeof reading === 'string' ? reading : null,
  };
}

function ratesOf(sampled: unknown): Record<string, number> {
  if (typeof sampled !== 'object' || sampled === null) return {};
  const rates = Object.entries(sampled).map(([name, of]: [string, Record<string, unknown>]) => [
    name,
    figure(of.tuples_per_s) ?? NaN,
  ]);
  return Object.fromEntries(rates) as Record<string, number>;
}

function arriving(sampled: unknown): number | null {
  const sum = Object.values(ratesOf(sampled)).reduce((all, rate) => all + rate, 0);
  return sum > 0 ? sum : null;
}

const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(text) : []);

export function planOf({ plan }: Explanation): Plan {
  return {
    operator: text(plan.operator),
    described: text(plan.described).split(', ').slice(1).join(', '),
    arrivingPerS: arriving(plan.sampled),
    reason: text(plan.reason),
    order: text(plan.order),
    window: text(plan.window),
    stateGrows: plan.state_grows === true,
    stateBytesPerHour: figure(plan.state_bytes_per_hour),
    main: text(plan.main),
    residual: texts(plan.residual),
    stages: stagesOf(plan.stages, (stage) => ({
      operator: text(stage.operator),
      conditions: texts(stage.conditions),
      index: texts(stage.index),
      groups: typeof stage.groups === 'string' ? stage.groups : null,
    })),
    ratesPerS: ratesOf(plan.sampled),
    unknownRates: Object.fromEntries(
      Object.entries(mapping(plan.unknown_rates)).map(([name, why]) => [name, text(why)]),
    ),
    options: Array.isArray(plan.operators) ? plan.operators.map((option) => optionOf(option, plan.readings)) : [],
    ways: waysOf(plan.ways),
  };
}
