/** What differs between two entries, by field. */
import type { Spec } from '../../api/types';

export interface Difference {
  field: string;
  /** As JSON; null where the field is not there. */
  theirs: string | null;
  mine: string | null;
}

const written = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

export const differencesOf = (theirs: Spec, mine: Spec): Difference[] =>
  [...new Set([...Object.keys(theirs), ...Object.keys(mine)])]
    .map((field) => ({ field, theirs: written(theirs[field]), mine: written(mine[field]) }))
    .filter((one) => one.theirs !== one.mine);
