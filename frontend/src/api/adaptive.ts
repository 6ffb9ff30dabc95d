/** Units that come and go, read out of what drivers report. */

import { mappings, number, numbers } from './mapping';

/** The units of a stage, at the end of a span: by R and S, or of a ring, how many store, and how many are only emptied;
 *  of a ring also N*, where it was looked at. */
export interface UnitsNow {
  stage: number;
  units: Record<string, number>;
  draining: Record<string, number>;
  best: number | null;
  model: RingModel | null;
}

/** What a single step of a ring's nodes takes, and who says so: set, measured or assumed. */
export interface StepTime {
  symbol: string;
  us: number;
  origin: string;
}

/** What the formulas say of a ring: a length for each stream, what a link must carry, and what they were given. */
export interface RingModel {
  lengths: Record<string, number>;
  bandwidthBytesPerS: number;
  latencyS: number;
  times: StepTime[];
}

/** Units of a subgroup came, begin to drain, or left, by these numbers. */
export interface Decision {
  stage: number;
  plan: number;
  batch: number;
  atUs: number;
  side: string;
  group: number;
  units: number;
  bytes: number;
  load: number;
  wish: number;
  added: number[];
  drained: number[];
  left: number[];
  way: string;
}

const unitNumbers = (value: unknown): number[] => (Array.isArray(value) ? value.map(number) : []);

const modelOf = (value: unknown): RingModel | null => {
  const [model] = mappings([value]);
  if (model === undefined || !('times' in model)) return null;
  return {
    lengths: numbers(model.lengths),
    bandwidthBytesPerS: number(model.bandwidth_bytes_per_s),
    latencyS: number(model.latency_s),
    times: mappings(model.times).map((one) => ({
      symbol: typeof one.symbol === 'string' ? one.symbol : '',
      us: number(one.us),
      origin: typeof one.origin === 'string' ? one.origin : '',
    })),
  };
};

export const unitsNowOf = (value: unknown): UnitsNow[] =>
  mappings(value).map((one) => ({
    stage: number(one.stage),
    units: numbers(one.units),
    draining: numbers(one.draining),
    best: typeof one.best === 'number' ? one.best : null,
    model: modelOf(one.model),
  }));

export const decisionsOf = (value: unknown): Decision[] =>
  mappings(value).map((one) => ({
    stage: number(one.stage),
    plan: number(one.plan),
    batch: number(one.batch),
    atUs: number(one.at_us),
    side: typeof one.side === 'string' ? one.side : '',
    group: number(one.group),
    units: number(one.units),
    bytes: number(one.bytes),
    load: number(one.load),
    wish: number(one.wish),
    added: unitNumbers(one.added),
    drained: unitNumbers(one.drained),
    left: unitNumbers(one.left),
    way: typeof one.way === 'string' ? one.way : '',
  }));

/** Whether units come and go in any of these reports. */
export const isAdaptive = (reports: { adaptive: UnitsNow[] }[]): boolean =>
  reports.some(({ adaptive }) => adaptive.length > 0);

/** Whose units there are in these reports: R and S of bicliques, or a ring. */
export const sidesOf = (reports: { adaptive: UnitsNow[] }[]): string[] => [
  ...new Set(reports.flatMap(({ adaptive }) => adaptive.flatMap(({ units }) => Object.keys(units)))),
];

const sum = (counts: (number | undefined)[]): number => counts.reduce<number>((all, count) => all + (count ?? 0), 0);

/** Units of a side that store, of all stages together; null where units stay as they are. */
export const storingUnits = (stages: UnitsNow[], side: string): number | null =>
  stages.length === 0 ? null : sum(stages.map(({ units }) => units[side]));

/** Units that drain, of all stages and sides; null where units stay as they are. */
export const drainingUnits = (stages: UnitsNow[]): number | null =>
  stages.length === 0 ? null : sum(stages.flatMap(({ draining }) => Object.values(draining)));

/** N* of the ring there is. */
export const bestNodes = (stages: UnitsNow[]): number | null => stages.find(({ best }) => best !== null)?.best ?? null;

/** What the formulas said of the ring there is, when they were last asked in these reports. */
export const lastModel = (reports: { adaptive: UnitsNow[] }[]): RingModel | null => {
  for (const { adaptive } of [...reports].reverse()) {
    const found = adaptive.find(({ model }) => model !== null)?.model;
    if (found) return found;
  }
  return null;
};
