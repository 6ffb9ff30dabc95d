/** Rows that people type: one JSON object a line. */
import type { Column, Spec } from '../../api/types';
import { readObject } from './form/json';

export type TypedRows = { lines: string[]; mistake: null } | { mistake: string };

export function rowsOf(text: string): TypedRows {
  const lines: string[] = [];
  for (const [place, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const reading = readObject(line);
    if (reading.mistake !== null)
      return {
        mistake: `Line ${String(place + 1)}, column ${String(reading.mistake.from + 1)}: ${reading.mistake.message}`,
      };
    lines.push(line);
  }
  return lines.length === 0 ? { mistake: 'There are no rows: write one object a line' } : { lines, mistake: null };
}

/** The columns that an entry gives. */
export const columnsOf = (spec: Spec): Column[] =>
  typeof spec.schema === 'object' && spec.schema !== null
    ? Object.entries(spec.schema).map(([name, type]) => ({ name, type: String(type) }))
    : [];

const MS_IN: Record<string, number> = { s: 1_000, ms: 1, us: 0.001 };

/** A row as one could be, with its event time now. */
export function exampleRow(spec: Spec, now: Date): object {
  const msInUnit = (typeof spec.time_unit === 'string' ? MS_IN[spec.time_unit] : undefined) ?? 0.001;
  return Object.fromEntries(
    columnsOf(spec).map(({ name, type }) => {
      const isClock = name === spec.time && type.startsWith('int');
      return [name, isClock ? Math.round(now.getTime() / msInUnit) : exampleValue(type, now)];
    }),
  );
}

function exampleValue(type: string, now: Date): unknown {
  if (type === 'timestamp') return now.toISOString();
  if (type === 'date') return now.toISOString().slice(0, 10);
  if (type === 'bool') return true;
  if (type === 'string' || type === 'binary') return 'text';
  return type.startsWith('int') ? 1 : 1.5;
}
