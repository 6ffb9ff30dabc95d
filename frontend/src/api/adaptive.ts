/** Units that come and go, read out of what drivers report. */

import { mappings, number, numbers } from './mapping';

/** The units of a stage, at the end of a span: by R and S, how many store, and how many are only emptied. */
export interface UnitsNow {
  stage: number;
  units: Record<string, number>;
  draining: Record<string, number>;
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
}

const unitNumbers = (value: unknown): number[] => (Array.isArray(value) ? value.map(number) : []);

export const unitsNowOf = (value: unknown): UnitsNow[] =>
  mappings(value).map((one) => ({
    stage: number(one.stage),
    units: numbers(one.units),
    draining: numbers(one.draining),
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
  }));

/** Whether units come and go in any of these reports. */
export const isAdaptive = (reports: { adaptive: UnitsNow[] }[]): boolean =>
  reports.some(({ adaptive }) => adaptive.length > 0);

const sum = (stages: UnitsNow[], of: (stage: UnitsNow) => Record<string, number>, side: string): number =>
  stages.reduce((all, stage) => all + (of(stage)[side] ?? 0), 0);

/** Units of R, of S and those that drain, of all stages together; null where units stay as they are. */
export function unitCounts(stages: UnitsNow[]): { r: number; s: number; draining: number } | null {
  if (stages.length === 0) return null;
  const draining = ['R', 'S'].reduce((all, side) => all + sum(stages, (stage) => stage.draining, side), 0);
  return { r: sum(stages, (stage) => stage.units, 'R'), s: sum(stages, (stage) => stage.units, 'S'), draining };
}
