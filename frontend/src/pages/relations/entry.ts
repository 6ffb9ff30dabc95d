/** A relation's entry, out of what is typed into the form. */
import type { RelationIn } from '../../api/types';

export interface Typed {
  source: string;
  path: string;
  url: string;
  table: string;
  /** Of Cassandra, with commas between. */
  hosts: string;
  keyspace: string;
  username: string;
  refresh: string;
  /** Of the database; it is no part of the entry. */
  password: string;
}

export const AT_FIRST: Typed = { source: 'parquet', path: '', url: '', table: '', hosts: '', keyspace: '', username: '', refresh: '', password: '' };

export const SOURCES = [
  { value: 'parquet', label: 'Parquet files' },
  { value: 'csv', label: 'CSV files' },
  { value: 'jsonl', label: 'JSON lines' },
  { value: 'arrow', label: 'Arrow files' },
  { value: 'sql', label: 'Table of PostgreSQL or SQLite' },
  { value: 'cassandra', label: 'Table of Cassandra' },
];

/** What is kept encrypted beside the entry; undefined where there is nothing. */
export function secretsOf({ source, password }: Typed): RelationIn['secrets'] {
  return hasPassword(source) && password !== '' ? { password } : undefined;
}

export const hasPassword = (source: string) => source === 'sql' || source === 'cassandra';

export type FieldName = Exclude<keyof Typed, 'source' | 'password'>;

/** What is asked for a source, in the order of the form. */
export function fieldsOf(source: string): FieldName[] {
  if (source === 'sql') return ['url', 'table', 'refresh'];
  if (source === 'cassandra') return ['hosts', 'keyspace', 'table', 'username', 'refresh'];
  return ['path', 'refresh'];
}

/** The form with what an entry says; settings that the form does not ask for are in no field of it. */
export function typedOf(spec: Record<string, unknown>): Typed {
  const typed = { ...AT_FIRST, source: typeof spec.source === 'string' ? spec.source : AT_FIRST.source };
  for (const name of fieldsOf(typed.source)) {
    const value = spec[name];
    if (Array.isArray(value)) typed[name] = value.map(String).join(', ');
    else if (typeof value === 'string' || typeof value === 'number') typed[name] = String(value);
  }
  return typed;
}

/** An entry that is changed keeps the settings that the form does not ask for, as long as its source stays. */
export function changedEntry(before: Record<string, unknown>, typed: Typed): RelationIn['spec'] {
  if (before.source !== typed.source) return entryOf(typed);
  const asked = new Set<string>(fieldsOf(typed.source));
  const kept = Object.fromEntries(Object.entries(before).filter(([name]) => !asked.has(name)));
  return { ...kept, ...entryOf(typed) };
}

/** Fields of other sources, and those that are empty, are left out. What is wrong is for the platform to say. */
export function entryOf(typed: Typed): RelationIn['spec'] {
  const entry: Record<string, string | string[]> = {};
  for (const name of fieldsOf(typed.source)) {
    const value = typed[name].trim();
    if (value !== '') entry[name] = name === 'hosts' ? value.split(/[\s,]+/).filter((host) => host !== '') : value;
  }
  return { source: typed.source as RelationIn['spec']['source'], ...entry };
}
