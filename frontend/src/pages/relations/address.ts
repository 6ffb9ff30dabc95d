/** Where a relation's page is, and where its rows are, in a few words. */
import type { Relation } from '../../api/types';

/** By its name, which people can read; a relation that is called as a page of ours is found by its id. */
export const relationPath = ({ id, name }: Pick<Relation, 'id' | 'name'>): string =>
  `/relations/${name === 'new' ? id : encodeURIComponent(name)}`;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const texts = (value: unknown): string => (Array.isArray(value) ? value.map(text).join(', ') : '');

export function placeOf({ spec }: Pick<Relation, 'spec'>): string {
  if (spec.source === 'sql') return `${text(spec.table)} of ${text(spec.url)}`;
  if (spec.source === 'cassandra') return `${text(spec.keyspace)}.${text(spec.table)} at ${texts(spec.hosts)}`;
  return text(spec.path);
}

export const refreshOf = ({ spec }: Pick<Relation, 'spec'>): string =>
  text(spec.refresh) === '' ? 'when asked' : `every ${text(spec.refresh)}`;
