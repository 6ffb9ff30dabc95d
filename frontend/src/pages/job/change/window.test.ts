import { expect, test } from 'vitest';
import { windowOf, withWindow } from './window';

const QUERY = 'SELECT ONLINE a.x FROM a, b WHERE a.k = b.k';

test.each([
  [`${QUERY} WITHIN 10 SECONDS`, '10 SECONDS'],
  [`${QUERY}\nwithin (0 SECONDS, 10 SECONDS);\n`, '(0 SECONDS, 10 SECONDS)'],
  [`${QUERY} AND a."within" = 'WITHIN 5 ROWS' -- WITHIN 3 ROWS`, ''],
  [QUERY, ''],
])('the window of %s is %s', (query, window) => expect(windowOf(query)).toBe(window));

test('another window stands where the one before stood', () => {
  expect(withWindow(`${QUERY} WITHIN 10 SECONDS;`, '100 ROWS')).toBe(`${QUERY} WITHIN 100 ROWS;`);
  expect(withWindow(`${QUERY};`, '100 ROWS')).toBe(`${QUERY}\nWITHIN 100 ROWS;`);
  expect(withWindow(`${QUERY}\nWITHIN 10 SECONDS`, '')).toBe(QUERY);
  expect(withWindow(QUERY, '')).toBe(QUERY);
});

test('a comment at the end does not swallow the window', () => {
  const query = withWindow(`${QUERY} -- all of it`, '100 ROWS');
  expect(windowOf(query)).toBe('100 ROWS');
  expect(query).toContain('-- all of it');
});
