/** Whether a file has all of an answer: the platform says at its end where it was cut off. */
import type { Answer } from '../api/types';
import { formatCount } from '../format';
import type { FileFormat } from './formats';

export type Cut = Pick<Answer, 'rows_given' | 'stopped_by'>;

type End = Cut & Pick<Answer, 'truncated'>;

/** The end of an answer is near the end of the file; Parquet and Arrow have a little for each column after it. */
const TAIL_BYTES = 1 << 18;

const CSV_MARK = '# cut off: ';
/** An object with objects in it. */
const OBJECT = /^\{(?:[^{}]|\{[^{}]*\})*\}/;

export async function cutOf(file: Blob, format: FileFormat): Promise<Cut | null> {
  const end = endOf(await file.slice(-TAIL_BYTES).text(), format);
  return end?.truncated ? { rows_given: end.rows_given, stopped_by: end.stopped_by } : null;
}

/** Null where it is not told: lines tell it only of answers that were cut off. */
function endOf(tail: string, format: FileFormat): End | null {
  const line = tail.slice(tail.trimEnd().lastIndexOf('\n') + 1);
  try {
    switch (format) {
      case 'csv':
        return line.startsWith(CSV_MARK) ? (JSON.parse(line.slice(CSV_MARK.length)) as End) : null;
      case 'ndjson':
        return (JSON.parse(line) as { $end?: End }).$end ?? null;
      default: {
        const [object] = OBJECT.exec(tail.slice(tail.lastIndexOf('{"rows_given"'))) ?? [];
        return object === undefined ? null : (JSON.parse(object) as End);
      }
    }
  } catch {
    return null;
  }
}

export function wordsOfCut(file: string, { rows_given, stopped_by }: Cut): string {
  const by = stopped_by === 'limit' ? 'its limit' : `cut off by ${stopped_by ?? 'a limit'}`;
  return `${file} has ${formatCount(rows_given)} rows, ${by}: there may be more`;
}
