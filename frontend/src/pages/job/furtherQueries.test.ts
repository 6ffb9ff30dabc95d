import { expect, test } from 'vitest';
import { furtherQueries, OWN, resultsOf } from './furtherQueries';

test('results of a query beside are asked by both names', () => {
  expect(resultsOf('wins', OWN)).toBe('wins');
  expect(resultsOf('wins', 'cheap')).toBe('wins:cheap');
});

test('a job has none beside its own unless it says so', () => {
  expect(furtherQueries({})).toEqual([]);
  expect(furtherQueries({ queries: { cheap: { query: 'q' }, dear: { query: 'p', stopped: true } } })).toEqual([
    { name: 'cheap', query: 'q', stopped: false },
    { name: 'dear', query: 'p', stopped: true },
  ]);
});
