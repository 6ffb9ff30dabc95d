/** What is wrong with a change, each mistake where it was typed. */
import { asProblem } from '../../../api/problem';
import type { Diagnostics, Place } from '../../../api/types';

const QUERY = '/query';

export interface Mistakes {
  ofQuery: Place[];
  /** By the JSON pointer of a field. */
  at: Record<string, string>;
  /** What no field of the form can show. */
  elsewhere: string[];
  count: number;
}

/** The field that a pointer is of, or is inside of. */
const fieldAt = (pointer: string, fields: readonly string[]): string | undefined =>
  fields.find((field) => pointer === field || pointer.startsWith(`${field}/`));

/**
 * @param refusal of the change as a whole; null for none. Where it names no place it is for others to show.
 * @param fields JSON pointers of the fields that are shown.
 */
export function mistakesOf(
  diagnostics: Diagnostics | undefined,
  refusal: unknown,
  fields: readonly string[],
): Mistakes {
  const places = [...(diagnostics?.diagnostics ?? []), ...(refusal === null ? [] : asProblem(refusal).places)];
  const found: Mistakes = { ofQuery: [], at: {}, elsewhere: [], count: places.length };
  for (const place of places) {
    const field = place.pointer ? fieldAt(place.pointer, fields) : undefined;
    if (place.pointer === QUERY || (place.pointer == null && place.span != null)) found.ofQuery.push(place);
    else if (field === undefined) found.elsewhere.push(`${(place.pointer ?? '').slice(1)} ${place.detail}`.trim());
    else found.at[field] ??= place.detail;
  }
  return found;
}
