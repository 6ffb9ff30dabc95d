import { expect, test } from 'vitest';
import { placeOf, refreshOf, relationPath } from './address';
import { createRelation } from '../../recipes';
import { AT_FIRST, changedEntry, entryOf, secretsOf, typedOf } from './entry';

test('an entry has the fields of its source that were filled', () => {
  const typed = { ...AT_FIRST, path: ' /data/c ', url: 'postgresql://h/db', table: 'rates', refresh: '10min' };
  expect(entryOf(typed)).toEqual({ source: 'parquet', path: '/data/c', refresh: '10min' });
  expect(entryOf({ ...typed, source: 'sql', refresh: ' ' })).toEqual({
    source: 'sql',
    url: 'postgresql://h/db',
    table: 'rates',
  });
});

test('a table of Cassandra has hosts, and a place that says them', () => {
  const typed = { ...AT_FIRST, source: 'cassandra', hosts: ' a, b  c,', keyspace: 'k', table: 't', url: 'x' };
  const spec = entryOf({ ...typed, password: 'canary' });
  expect(spec).toEqual({ source: 'cassandra', hosts: ['a', 'b', 'c'], keyspace: 'k', table: 't' });
  expect(placeOf({ spec })).toBe('k.t at a, b, c');
  expect(secretsOf({ ...typed, password: 'canary' })).toEqual({ password: 'canary' });
});

test('a password is no part of the entry, belongs to databases, and is copied as words', () => {
  const typed = { ...AT_FIRST, source: 'sql', url: 'postgresql://h/db', table: 'rates', password: ' canary ' };
  expect(entryOf(typed)).not.toHaveProperty('password');
  expect(secretsOf(typed)).toEqual({ password: ' canary ' });
  expect(secretsOf({ ...typed, source: 'csv' })).toBeUndefined();
  expect(secretsOf({ ...typed, password: '' })).toBeUndefined();
  const recipe = createRelation('t', entryOf(typed), secretsOf(typed) ?? undefined);
  expect(JSON.stringify(recipe)).not.toContain('canary');
  for (const one of [recipe.curl, recipe.cli, recipe.python]) expect(one).toContain('THE PASSWORD');
});

test('a relation is told by where its rows are', () => {
  expect(placeOf({ spec: { source: 'csv', path: '/data/c.csv' } })).toBe('/data/c.csv');
  expect(placeOf({ spec: { source: 'sql', url: 'postgresql://h/db', table: 'rates' } })).toBe(
    'rates of postgresql://h/db',
  );
  expect(refreshOf({ spec: { refresh: '5s' } })).toBe('every 5s');
  expect(refreshOf({ spec: {} })).toBe('when asked');
  expect(relationPath({ id: 'rel_1', name: 'new' })).toBe('/relations/rel_1');
  expect(relationPath({ id: 'rel_1', name: 'rates' })).toBe('/relations/rates');
});

test('an entry that is changed keeps what the form does not ask for, and another source has nothing of it', () => {
  const spec = { source: 'csv', path: '/data/c.csv', refresh: '10min', schema: { id: 'int64' }, header: false };
  const typed = typedOf(spec);
  expect(changedEntry(spec, typed)).toEqual(spec);
  expect(changedEntry(spec, { ...typed, path: '/data/d.csv', refresh: '' })).toEqual({
    source: 'csv', path: '/data/d.csv', schema: { id: 'int64' }, header: false,
  });
  expect(changedEntry(spec, { ...typed, source: 'parquet' })).toEqual({
    source: 'parquet', path: '/data/c.csv', refresh: '10min',
  });
  const table = { source: 'cassandra', hosts: ['a', 'b'], keyspace: 'k', table: 't', port: 9042 };
  expect(changedEntry(table, typedOf(table))).toEqual(table);
});
