/** A kept question in words, and as the API takes it. */
import type { QueryIn, SavedQuery } from '../../api/types';
import { formatCell, formatCount } from '../../format';
import type { Times } from '../../times';

/** It was checked when it was kept, so it is one; the list says only that it is a mapping. */
export const questionOf = ({ question }: Pick<SavedQuery, 'question'>): QueryIn => question as unknown as QueryIn;

/** A date and time that does not name its zone; nothing else matches. */
const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$/;

/** Kept times are microseconds, or texts as they were given: without a zone the API takes them as UTC. */
function timeOf(value: number | string, times: Times): string {
  if (typeof value === 'number') return times.timeOfUs(value);
  return times.time(WITHOUT_ZONE.test(value) ? `${value}Z` : value);
}

/** A snapshot, such as 41.0, or a time. */
const momentOf = (value: number | string, times: Times): string =>
  typeof value === 'string' && /^\d+\.\d+$/.test(value) ? `snapshot ${value}` : timeOf(value, times);

function range(what: string, from: string | null, to: string | null): string[] {
  if (from !== null && to !== null) return [`${what} from ${from} to ${to}`];
  if (from !== null) return [`${what} from ${from}`];
  return to === null ? [] : [`${what} up to ${to}`];
}

/** What it asks for, piece by piece; one piece at least. */
export function wordsOf(question: QueryIn, times: Times): string[] {
  const { from, to, key, key_from, key_to, where, select, aggregate, by, after, upto, as_of, history, limit, cursor } =
    question;
  const time = (value: number | string | null | undefined) => (value == null ? null : timeOf(value, times));
  const cell = (value: unknown) => (value == null ? null : formatCell(value));
  const words = [
    ...(aggregate == null ? [] : [aggregate]),
    ...(by == null ? [] : [`by ${by.join(', ')}`]),
    ...(select == null ? [] : [`only ${select.join(', ')}`]),
    ...(where == null ? [] : [`where ${where}`]),
    ...(key == null ? [] : [`key ${formatCell(key)}`]),
    ...range('keys', cell(key_from), cell(key_to)),
    ...range('time', time(from), time(to)),
    ...range('snapshots', after == null ? null : `after ${after}`, upto ?? null).map((text) =>
      text.replace('from after', 'after'),
    ),
    ...(as_of == null ? [] : [`as of ${momentOf(as_of, times)}`]),
    ...(history === true ? ['every change'] : []),
    ...(limit == null ? [] : [`${formatCount(limit)} rows at most`]),
    ...(cursor == null ? [] : ['from where an answer ended']),
  ];
  return words.length === 0 ? ['all results'] : words;
}
