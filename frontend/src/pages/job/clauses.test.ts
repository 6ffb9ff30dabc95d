import { expect, test } from 'vitest';
import { inClauses } from './clauses';

test('a query of one line has a line for each clause, and nothing else is changed', () => {
  const query =
    "SELECT ONLINE a.k FROM a LEFT JOIN b ON a.k = b.k where a.t <> ' from ' AND b.v > 1 WITHIN (0 SECONDS, 9 SECONDS)";
  expect(inClauses(query).split('\n')).toEqual([
    'SELECT ONLINE a.k',
    'FROM a',
    'LEFT JOIN b ON a.k = b.k',
    "where a.t <> ' from ' AND b.v > 1",
    'WITHIN (0 SECONDS, 9 SECONDS)',
  ]);
  expect(inClauses(query).replaceAll('\n', ' ')).toBe(query);
});

test('words in parentheses and quoted names are no clauses', () => {
  const query = 'SELECT ONLINE EXTRACT(hour FROM a.t) FROM a, b WHERE a." join " = b.k';
  expect(inClauses(query).split('\n')).toHaveLength(3);
});

test('a query that has lines keeps them, and so does one with a comment', () => {
  const lines = 'SELECT ONLINE a.k\n  FROM a, b WHERE a.k = b.k';
  expect(inClauses(`${lines}\n`)).toBe(lines);
  expect(inClauses('SELECT ONLINE a.k FROM a, b -- from here')).toBe('SELECT ONLINE a.k FROM a, b -- from here');
});
