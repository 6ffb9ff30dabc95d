/** Places of the API, lines and columns from 1, as offsets into a text. */
import type { Place } from '../api/types';

export interface Squiggle {
  from: number;
  to: number;
  message: string;
}

/** Columns count characters, and offsets units of UTF-16: some characters are two of them. */
function offsetOf(text: string, starts: number[], line: number, column: number): number {
  let at = starts[line - 1] ?? text.length;
  for (let left = column - 1; left > 0 && at < text.length; left -= 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return at;
}

/**
 * Where to underline which mistake. Mistakes without a place are of the whole text, and an empty place gets a
 * character, so that there is something to underline.
 */
export function squigglesOf(written: string, places: Place[]): Squiggle[] {
  // An editor ends every line with one character.
  const text = written.replaceAll('\r\n', '\n');
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return places.map(({ detail, span }) => {
    if (!span) return { from: 0, to: text.length, message: detail };
    const from = offsetOf(text, starts, span.line ?? 1, span.column ?? 1);
    const to = offsetOf(text, starts, span.end_line ?? 1, span.end_column ?? 1);
    return to > from
      ? { from, to, message: detail }
      : { from: Math.max(0, Math.min(from, text.length - 1)), to: Math.min(from + 1, text.length), message: detail };
  });
}
