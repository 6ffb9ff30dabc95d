/** How the operators are to be compared: what all of them share, and the knobs of each that its figures depend on. */
import { OPERATOR_SETTINGS, type Setting as Knob } from '../../api/fields.gen';
import type { Draft, Job } from '../../api/types';

export type { Knob };

/** What an operator may promise of the order of its results. */
export const ORDERINGS = OPERATOR_SETTINGS.auto?.find(({ name }) => name === 'ordering')?.choices ?? [];

export interface Setting {
  slots: number;
  ordering: string;
  /** By operator, as they stand in a job. */
  knobs: Record<string, Record<string, unknown>>;
}

/** The knobs with a form; those of a job that are not here are kept. */
export const knobsOf = (operator: string): readonly Knob[] =>
  (OPERATOR_SETTINGS[operator] ?? []).filter(({ compared }) => compared);

export const AUTO = 'auto';

const isOrdering = (value: unknown): value is string => ORDERINGS.some((one) => one === value);

/** What a job runs with; or, without one, with these slots and everything else as it is when nobody says anything. */
export function settingOf(job: Pick<Job, 'operator' | 'run'> | undefined, slots: number): Setting {
  if (job === undefined) return { slots, ordering: 'none', knobs: {} };
  const { name, ordering, ...knobs } = job.operator;
  return {
    slots: typeof job.run.slots === 'number' ? job.run.slots : slots,
    ordering: isOrdering(ordering) ? ordering : 'none',
    knobs: Object.keys(knobs).length === 0 ? {} : { [typeof name === 'string' ? name : AUTO]: knobs },
  };
}

/** A job that leaves the choice of its operator means its knobs for the one that is taken. */
export function resolved(setting: Setting, taken: string): Setting {
  const { [AUTO]: knobs, ...rest } = setting.knobs;
  return knobs === undefined ? setting : { ...setting, knobs: { [taken]: knobs, ...rest } };
}

/** The setting with one knob changed; none where it is empty. */
export function withKnob(setting: Setting, operator: string, knob: string, value: unknown): Setting {
  const kept = Object.entries(setting.knobs[operator] ?? {}).filter(([name]) => name !== knob);
  const knobs = Object.fromEntries(value === '' || value === null ? kept : [...kept, [knob, value]]);
  return { ...setting, knobs: { ...setting.knobs, [operator]: knobs } };
}

export const hasKnobs = (setting: Setting, operator: string): boolean =>
  Object.keys(setting.knobs[operator] ?? {}).length > 0;

/** The question to the API: this query by this operator. */
export function draftOf(query: string, setting: Setting, operator: string): Draft {
  const { slots, ordering, knobs } = setting;
  return {
    query,
    // Names are those of the API's list, and knobs are judged by the API.
    operator: {
      name: operator,
      ...knobs[operator],
      ...(ordering === 'none' ? {} : { ordering }),
    } as NonNullable<Draft['operator']>,
    run: { slots },
  };
}

/** The same for a number of slots: one question tells of all operators, and their units follow the slots. */
export function scaledDraft(query: string, setting: Setting, slots: number): Draft {
  const knobs = Object.fromEntries(
    Object.entries(setting.knobs).map(([operator, given]) => [operator, withoutCounts(operator, given)]),
  );
  const scaled = { ...setting, knobs, slots };
  return draftOf(query, scaled, Object.keys(knobs).find((operator) => hasKnobs(scaled, operator)) ?? AUTO);
}

const withoutCounts = (operator: string, given: Record<string, unknown>): Record<string, unknown> => {
  const counts = new Set(knobsOf(operator).filter((knob) => knob.countsUnits).map(({ name }) => name));
  return Object.fromEntries(Object.entries(given).filter(([name]) => !counts.has(name)));
};
