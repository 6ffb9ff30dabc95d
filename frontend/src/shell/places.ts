/** Which fields of a form an error speaks of, and what is left to be said elsewhere. */
import { asProblem } from '../api/problem';

export interface FormErrors {
  /** What is wrong with a field, by its JSON pointer. */
  at: Record<string, string>;
  /** The error, where no field can show all of it; else null. */
  rest: unknown;
}

const CONFLICT = 409;

/**
 * @param pointers of the fields that the form has.
 * @param taken the field that a conflict speaks of, such as a name that somebody else took.
 */
export function formErrors(error: unknown, pointers: readonly string[], taken?: string): FormErrors {
  if (error === null) return { at: {}, rest: null };
  const { places, status, message } = asProblem(error);
  if (status === CONFLICT && taken !== undefined) return { at: { [taken]: message }, rest: null };
  const at: Record<string, string> = {};
  for (const { pointer, detail } of places) {
    if (pointer && pointers.includes(pointer)) at[pointer] ??= detail;
  }
  const isAllTold = places.length > 0 && places.every(({ pointer }) => pointer && pointer in at);
  return { at, rest: isAllTold ? null : error };
}
