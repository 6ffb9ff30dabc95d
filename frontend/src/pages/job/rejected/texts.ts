/** What a rejected row was, as text that does nothing but stand there. */
import type { RejectedRow } from '../../../api/types';

/** A longer text is shown whole on demand only. */
export const CLIPPED = 120;

/** What nobody sees and what turns text around: not tab and line break, nor what joins emoji. */
const UNSEEN = /(?![\t\n\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** The text with such characters by their numbers. */
export const visible = (text: string): string =>
  text.replace(UNSEEN, (letter) => `\\u${(letter.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);

/** A row's text without the line break that ended it in its file; bytes that are no text by their base64. */
export function textOf(row: RejectedRow): string {
  if (row.record !== null) return visible(row.record.replace(/\r?\n$/, ''));
  return row.record_base64 === null ? '(no value)' : `(base64) ${row.record_base64}`;
}

/** Where it was read. */
export const placeOf = (row: RejectedRow): string => visible(`${row.source}, ${row.unit} ${String(row.position)}`);

/** The beginning of a text on one line; null where that is all of it. */
export function clipped(text: string): string | null {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length === text.length && text.length <= CLIPPED ? null : `${line.slice(0, CLIPPED)}…`;
}
