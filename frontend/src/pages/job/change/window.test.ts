import { expect, test } from 'vitest';
import { windowOf, withWindow } from './window';

const QUERY = 'SELECT ONLINE a.x FROM a, b WHERE a.k = b.k';

test.each([
  [`${QUERY} WITHIN 10 SECONDS`, '10 SECONDS'],
  [`${QUERY}\nwithin (0 SECONDS, 10 SECONDS);\n`, '(0 SECONDS, 10 SECONDS)'],
  [`${QUERY} AND a."within" = 'WITHIN 5 ROWS' -- WITHIN 3 ROWS`, ''],
  [QUERY, ''],
  [`${QUERY} WITHIN 2 SECONDS\nGROUP BY a.k, TUMBLE(5 SECONDS) HAVING COUNT(*) > 1`, '2 SECONDS'],
  [`${QUERY} WITHIN (1 SECOND, 2 SECONDS) -- near\ngroup  by a.k CUMULATIVE EMIT EVERY 5 SECONDS;`, '(1 SECOND, 2 SECONDS)'],
  [`${QUERY} GROUP BY a.k`, ''],
])('the window of %s is %s', (query, window) => expect(windowOf(query)).toBe(window));

test('another window stands where the one before stood', () => {
  expect(withWindow(`${QUERY} WITHIN 10 SECONDS;`, '100 ROWS')).toBe(`${QUERY} WITHIN 100 ROWS;`);
  expect(withWindow(`${QUERY};`, '100 ROWS')).toBe(`${QUERY}\nWITHIN 100 ROWS;`);
  expect(withWindow(`${QUERY}\nWITHIN 10 SECONDS`, '')).toBe(QUERY);
  expect(withWindow(QUERY, '')).toBe(QUERY);
});

test.each([
  ['GROUP BY a.k, TUMBLE(5 SECONDS)'],
  ['GROUP BY a.k CUMULATIVE HAVING COUNT(*) > 1 EMIT EVERY 5 SECONDS;'],
  ['-- by key\ngroup by a.k'],
])('groups stay as they are behind the window: %s', (groups) => {
  const within = `${QUERY} WITHIN 2 SECONDS\n${groups}`;
  expect(withWindow(within, '3 SECONDS')).toBe(`${QUERY} WITHIN 3 SECONDS\n${groups}`);
  expect(withWindow(within, '')).toBe(`${QUERY}\n${groups}`);
  expect(withWindow(`${QUERY}\n${groups}`, '3 SECONDS')).toBe(`${QUERY}\nWITHIN 3 SECONDS\n${groups}`);
  expect(withWindow(`${QUERY} ${groups}`, '3 SECONDS')).toBe(`${QUERY}\nWITHIN 3 SECONDS ${groups}`);
});

test('what is called like a clause in a text or in brackets ends no window', () => {
  const query = "SELECT ONLINE LOWER('GROUP BY') FROM a, b WHERE (a.k = b.k /* HAVING */ AND a.\"having\" = 1)";
  expect(withWindow(query, '3 SECONDS')).toBe(`${query}\nWITHIN 3 SECONDS`);
});

test('a comment at the end does not swallow the window', () => {
  const query = withWindow(`${QUERY} -- all of it`, '100 ROWS');
  expect(windowOf(query)).toBe('100 ROWS');
  expect(query).toContain('-- all of it');
});
