import { expect, test } from 'vitest';
import { blockersOf, tooLong } from './blockers';

const right = {
  query: 'SELECT',
  name: 'wins',
  mayCreate: true,
  isChecking: false,
  isValid: true,
  mistakesInQuery: 0,
  wrongFields: [],
};

test('nothing keeps a right join with a name from being created', () => {
  expect(blockersOf(right)).toEqual([]);
});

test('everything that keeps a join from being created is said', () => {
  const said = (change: Partial<Parameters<typeof blockersOf>[0]>) => blockersOf({ ...right, ...change }).join('; ');
  expect(said({ query: ' ', name: ' ' })).toMatch(/^write a query, .*; give the job a name$/);
  expect(said({ isChecking: true })).toBe('the query is being checked');
  expect(said({ isValid: undefined })).toBe('the query could not be checked');
  expect(said({ isValid: false, mistakesInQuery: 1 })).toBe('mend the mistake in the query');
  expect(said({ isValid: false, wrongFields: ['Slots', 'Kept for'] })).toBe('change what is wrong in Slots, Kept for');
  expect(said({ name: '-x' })).toMatch(/^give it a name of letters/);
  expect(said({ mayCreate: false, query: '' })).toMatch(/^ask an admin/);
});

test('a query that is too long is told its length, whatever else is known of it', () => {
  expect(tooLong('x'.repeat(65_536))).toBeNull();
  // A character outside the basic plane is one.
  expect(tooLong('\u{1f600}'.repeat(65_536))).toBeNull();
  const words = 'the query has 71,010 characters, and 65,536 is the most';
  expect(tooLong('x'.repeat(71_010))).toBe(words);
  expect(blockersOf({ ...right, query: 'x'.repeat(71_010), isChecking: true, isValid: undefined })).toEqual([words]);
});
