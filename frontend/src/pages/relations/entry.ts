/** A relation's entry, out of what is typed into the form. */
import type { RelationIn } from '../../api/types';

export interface Typed {
  source: string;
  path: string;
  url: string;
  table: string;
  refresh: string;
  /** Of the database; it is no part of the entry. */
  password: string;
}

export const AT_FIRST: Typed = { source: 'parquet', path: '', url: '', table: '', refresh: '', password: '' };

export const SOURCES = [
  { value: 'parquet', label: 'Parquet files' },
  { value: 'csv', label: 'CSV files' },
  { value: 'jsonl', label: 'JSON lines' },
  { value: 'arrow', label: 'Arrow files' },
  { value: 'sql', label: 'Table of a database' },
];

/** What is kept encrypted beside the entry; undefined where there is nothing. */
export function secretsOf({ source, password }: Typed): RelationIn['secrets'] {
  return source === 'sql' && password !== '' ? { password } : undefined;
}

/** Fields of other sources, and those that are empty, are left out. What is wrong is for the platform to say. */
export function entryOf(typed: Typed): RelationIn['spec'] {
  const { source, path, url, table, refresh } = typed;
  const given: Record<string, string> = source === 'sql' ? { url, table, refresh } : { path, refresh };
  const entry: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) if (value.trim() !== '') entry[name] = value.trim();
  return { source: source as RelationIn['spec']['source'], ...entry };
}
