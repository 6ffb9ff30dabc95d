/** Explanations side by side: what each operator costs, which is the least, and in which order they stand. */
import type { Explanation, Operator, Place } from '../../api/types';
import { planOf, type Option } from '../join/plan';

export interface Measure {
  key: 'memoryBytes' | 'replication' | 'comparisonsPerS' | 'bytesPerS';
  label: string;
}

export const MEASURES: readonly Measure[] = [
  { key: 'memoryBytes', label: 'Memory' },
  { key: 'replication', label: 'Replication' },
  { key: 'comparisonsPerS', label: 'Comparisons' },
  { key: 'bytesPerS', label: 'Sent' },
];

export type MeasureKey = Measure['key'];

/** What was asked about one operator by itself. */
export interface Asked {
  explanation?: Explanation | undefined;
  /** Why it was not explained. */
  mistakes?: Place[] | undefined;
}

export interface Row {
  name: string;
  system: string;
  /** With which units and knobs it would run; empty before that is known. */
  described: string;
  /** Why it cannot run the query like this; null where it can. */
  refusal: string | null;
  /** Why it gives no order; null where it does, undefined before that is known. */
  orderRefusal: string | null | undefined;
  figures: Record<MeasureKey, number | null>;
}

const optionOf = (explanation: Explanation | undefined, name: string): Option | undefined =>
  explanation && planOf(explanation).options.find((option) => option.name === name);

/**
 * @param base the explanation with the operator that is taken when nobody says one.
 * @param ordered the same where a total order is asked for.
 * @param asked what was asked about each operator, in the order of `operators`.
 */
export function rowsOf(
  operators: readonly Operator[],
  base: Explanation,
  ordered: Explanation | undefined,
  asked: readonly Asked[],
): Row[] {
  return operators.map(({ name, system }, place): Row => {
    const { explanation, mistakes } = asked[place] ?? {};
    const option = optionOf(explanation, name) ?? optionOf(base, name);
    const mistake = mistakes?.[0]?.detail;
    const refusal = mistake ?? option?.refusal ?? null;
    const inOrder = optionOf(ordered, name);
    return {
      name,
      system,
      described: explanation === undefined ? '' : planOf(explanation).described,
      refusal,
      orderRefusal: inOrder?.refusal,
      figures: {
        memoryBytes: refusal === null ? (option?.memoryBytes ?? null) : null,
        replication: refusal === null ? (option?.replication ?? null) : null,
        comparisonsPerS: refusal === null ? (option?.comparisonsPerS ?? null) : null,
        bytesPerS: refusal === null ? (option?.bytesPerS ?? null) : null,
      },
    };
  });
}

export const hasFigures = (row: Row): boolean => Object.values(row.figures).some((figure) => figure !== null);

export interface Range {
  /** The least; null where all have the same. */
  best: number | null;
  most: number;
}

export function rangeOf(rows: readonly Row[], key: MeasureKey): Range {
  const known = rows.flatMap(({ figures }) => figures[key] ?? []);
  const least = Math.min(...known);
  const most = Math.max(...known, 0);
  return { best: known.length > 1 && least < most ? least : null, most };
}

export interface Sorting {
  by: 'name' | MeasureKey;
  down: boolean;
}

/** Rows without the figure come last, whichever way. */
export function sorted(rows: readonly Row[], sorting: Sorting | null): Row[] {
  if (sorting === null) return [...rows];
  const { by, down } = sorting;
  const sign = down ? -1 : 1;
  return [...rows].sort((one, other) => {
    if (by === 'name') return sign * one.name.localeCompare(other.name);
    const [a, b] = [one.figures[by], other.figures[by]];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (a - b);
  });
}

/** What the next press on a column's head asks for: the least first, then the most, then as it was. */
export function nextSorting(before: Sorting | null, by: Sorting['by']): Sorting | null {
  if (before?.by !== by) return { by, down: false };
  return before.down ? null : { by, down: true };
}
