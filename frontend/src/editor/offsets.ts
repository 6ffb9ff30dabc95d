/** Places of the API, lines and columns from 1, as offsets into a text. */
import type { Place } from '../api/types';

export interface Squiggle {
  from: number;
  to: number;
  message: string;
}

const offsetOf = (starts: number[], length: number, line: number, column: number): number =>
  Math.min((starts[line - 1] ?? length) + column - 1, length);

/**
 * Where to underline which mistake. Mistakes without a place are of the whole text, and an empty place gets a
 * character, so that there is something to underline.
 */
export function squigglesOf(text: string, places: Place[]): Squiggle[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return places.map(({ detail, span }) => {
    if (!span) return { from: 0, to: text.length, message: detail };
    const from = offsetOf(starts, text.length, span.line ?? 1, span.column ?? 1);
    const to = offsetOf(starts, text.length, span.end_line ?? 1, span.end_column ?? 1);
    return to > from
      ? { from, to, message: detail }
      : { from: Math.max(0, Math.min(from, text.length - 1)), to: Math.min(from + 1, text.length), message: detail };
  });
}
