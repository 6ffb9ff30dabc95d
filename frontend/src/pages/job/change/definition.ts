/** What makes a job the join that it is, and how two of them differ, field by field as the API compares them. */
import { isMapping } from '../../../api/mapping';
import type { Job } from '../../../api/types';

export type Section = 'operator' | 'results' | 'run';
export const SECTIONS: readonly Section[] = ['operator', 'results', 'run'];

export type Definition = Pick<Job, 'query' | 'queries' | Section>;

export interface FieldChange {
  field: string;
  /** Undefined where only the other one has the field. */
  before: unknown;
  after: unknown;
}

/** The values of a mapping by their dotted names; mappings inside of it are looked into. */
export function fieldsOf(value: Record<string, unknown>, place = ''): Map<string, unknown> {
  const fields = new Map<string, unknown>();
  for (const [name, inner] of Object.entries(value)) {
    const field = place === '' ? name : `${place}.${name}`;
    if (isMapping(inner)) for (const [below, deep] of fieldsOf(inner, field)) fields.set(below, deep);
    else if (inner !== null && inner !== undefined) fields.set(field, inner);
  }
  return fields;
}

/** A job stays with the store that it was created with, so that is no part of what changes. */
export function definitionOf({ query, queries, operator, results, run }: Definition): Definition {
  const policy = Object.fromEntries(Object.entries(results).filter(([name]) => name !== 'store'));
  return { query, queries: queries ?? {}, operator, results: policy, run };
}

export const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

export function changesBetween(before: Definition, after: Definition): FieldChange[] {
  const old = fieldsOf({ ...definitionOf(before) });
  const now = fieldsOf({ ...definitionOf(after) });
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((field) => !isSame(old.get(field), now.get(field)))
    .sort()
    .map((field) => ({ field, before: old.get(field), after: now.get(field) }));
}
