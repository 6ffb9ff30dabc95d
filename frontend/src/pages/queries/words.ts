/** A kept question in words, and as the API takes it. */
import type { QueryIn, SavedQuery } from '../../api/types';
import { formatCell, formatCount, formatTime } from '../../format';

/** It was checked when it was kept, so it is one; the list says only that it is a mapping. */
export const questionOf = ({ question }: Pick<SavedQuery, 'question'>): QueryIn => question as unknown as QueryIn;

const US_PER_MS = 1_000;

/** Kept times are microseconds, or texts as they were given. */
function timeOf(value: number | string): string {
  const ms = typeof value === 'number' ? value / US_PER_MS : Date.parse(value);
  return Number.isNaN(ms) || Math.abs(ms) > 8.64e15 ? String(value) : formatTime(new Date(ms).toISOString());
}

function range(what: string, from: string | null, to: string | null): string[] {
  if (from !== null && to !== null) return [`${what} from ${from} to ${to}`];
  if (from !== null) return [`${what} from ${from}`];
  return to === null ? [] : [`${what} up to ${to}`];
}

/** What it asks for, piece by piece; one piece at least. */
export function wordsOf(question: QueryIn): string[] {
  const { from, to, key, key_from, key_to, where, select, aggregate, by, after, upto, limit } = question;
  const time = (value: number | string | null | undefined) => (value == null ? null : timeOf(value));
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
    ...(limit == null ? [] : [`${formatCount(limit)} rows at most`]),
  ];
  return words.length === 0 ? ['all results'] : words;
}
