/** Types of columns, as entries write them. */
import type { Column } from '../../../api/types';

export const TYPES = [
  'bool',
  'int8',
  'int16',
  'int32',
  'int64',
  'float32',
  'float64',
  'string',
  'binary',
  'date',
  'timestamp',
  'timestamp_ns',
];

const DECIMAL = /^decimal\(([^)]*)\)$/;
export const NEW_DECIMAL = 'decimal(18,2)';

/** What stands between the brackets of a decimal, or null for another type. */
export const decimalOf = (type: string): string | null => DECIMAL.exec(type)?.[1] ?? null;

/** Names of columns that can be an event time, each once: while they are typed, some have no name, or another's. */
export const timesAmong = (columns: Column[]): string[] => {
  const times = columns.filter(({ type }) => /^(timestamp|timestamp_ns|date|int\d+)$/.test(type)).map(({ name }) => name.trim());
  return [...new Set(times)].filter((name) => name !== '');
};
