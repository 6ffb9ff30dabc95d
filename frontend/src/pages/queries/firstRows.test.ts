import { expect, test } from 'vitest';
import { firstRows, ROWS_MAX } from './firstRows';

test('a page shows so many rows, or fewer if the question says so', () => {
  expect(firstRows({ job: 'wins' })).toEqual({ job: 'wins', limit: ROWS_MAX });
  expect(firstRows({ job: 'wins', limit: null }).limit).toBe(ROWS_MAX);
  expect(firstRows({ job: 'wins', limit: 50 }).limit).toBe(50);
  expect(firstRows({ job: 'wins', limit: 1_000_000 }).limit).toBe(ROWS_MAX);
});

test('an aggregate is asked as it is', () => {
  const sums = { job: 'wins', aggregate: 'sum(price)', by: ['name'] };
  expect(firstRows(sums)).toEqual(sums);
  expect(firstRows({ job: 'wins', aggregate: 'count' })).toEqual({ job: 'wins', aggregate: 'count' });
});
