/** Predictions for growing numbers of slots, as lines. */
import type { Explanation } from '../../api/types';
import { planOf } from '../join/plan';
import type { MeasureKey } from './comparison';

/** What is asked about, one after the other. */
export const SLOTS: readonly number[] = [1, 2, 4, 8, 16, 32, 64];

export interface Step {
  slots: number;
  explanation: Explanation;
}

export interface Line {
  label: string;
  /** One for each step; null where the operator cannot run, or no formula tells. */
  values: (number | null)[];
}

/** Only operators that have a figure. */
export function linesOf(steps: readonly Step[], key: MeasureKey): Line[] {
  const options = steps.map(({ explanation }) => planOf(explanation).options);
  const names = [...new Set(options.flatMap((step) => step.map(({ name }) => name)))];
  return names
    .map((label) => ({
      label,
      values: options.map((step) => step.find(({ name }) => name === label)?.[key] ?? null),
    }))
    .filter(({ values }) => values.some((value) => value !== null));
}

/** Round steps of decimals are 1, 2 and 5; those of bytes are powers of two. */
const ROUND = { 2: [1, 2], 10: [1, 2, 5, 10] };

/** At most `count` round steps from 0 to at least `most`. */
export function ticksOf(most: number, count: number, base: 2 | 10): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / count;
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const step = ROUND[base].map((times) => times * power).find((one) => one >= rough * (1 - 1e-9)) ?? rough;
  const ticks = [0];
  while ((ticks[ticks.length - 1] ?? most) < most * (1 - 1e-9)) ticks.push(ticks.length * step);
  return ticks;
}

interface EndName {
  line: number;
  y: number;
}

/**
 * Where the names of lines stand beside their ends: as near as can be, and `gap` pixels from each other.
 *
 * @param ends the height of each line's end, in pixels; null for lines without one.
 * @param bottom the lowest place for a name.
 */
export function endNames(ends: readonly (number | null)[], gap: number, bottom: number): EndName[] {
  const names = ends.flatMap((y, line): EndName[] => (y === null ? [] : [{ line, y }]));
  names.sort((one, other) => one.y - other.y);
  let above = -Infinity;
  for (const name of names) {
    name.y = Math.max(name.y, above + gap);
    above = name.y;
  }
  let below = bottom + gap;
  for (const name of [...names].reverse()) {
    name.y = Math.min(name.y, below - gap);
    below = name.y;
  }
  return names;
}
