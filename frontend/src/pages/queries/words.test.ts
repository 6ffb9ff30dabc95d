import { afterEach, expect, test } from 'vitest';
import type { QueryIn } from '../../api/types';
import { timesOf } from '../../times';
import { wordsOf as inZone } from './words';

const before = process.env.TZ;

afterEach(() => {
  process.env.TZ = before;
});

const wordsOf = (question: QueryIn) => inZone(question, timesOf('utc'));

test('a question without conditions asks for everything', () => {
  expect(wordsOf({ job: 'wins', format: 'json' })).toEqual(['all results']);
});

test('each condition is told, with times for people', () => {
  expect(
    wordsOf({ job: 'wins', format: 'json', from: 1_769_860_800_000_000, to: 'soon', key: 7, limit: 1_000 }),
  ).toEqual(['key 7', 'time from 2026-01-31 12:00:00Z to soon', '1,000 rows at most']);
  expect(wordsOf({ job: 'wins', format: 'json', key_to: 'z', after: '4.0', upto: '9.0' })).toEqual([
    'keys up to z',
    'snapshots after 4.0 to 9.0',
  ]);
});

test('a time without a zone is one of UTC, as it is for the API', () => {
  process.env.TZ = 'Asia/Kolkata';
  const told = (from: string) => wordsOf({ job: 'wins', format: 'json', from })[0];
  const noon = 'time from 2026-01-31 12:00:00Z';
  expect(told('2026-01-31T12:00')).toBe(noon);
  expect(told('2026-01-31 12:00:00.000')).toBe(noon);
  expect(told('2026-01-31T12:00:00Z')).toBe(noon);
  expect(told('2026-01-31T17:30:00+05:30')).toBe(noon);
  expect(told('2026-01-31')).toBe('time from 2026-01-31 00:00:00Z');
});

test('aggregates come first', () => {
  expect(
    wordsOf({ job: 'wins', format: 'json', where: 'price > 1', aggregate: 'count, sum(price)', by: ['a', 'b'] }),
  ).toEqual(['count, sum(price)', 'by a, b', 'where price > 1']);
});

test('what groups were, their changes, and where it goes on are told', () => {
  const format = 'json' as const;
  expect(wordsOf({ job: 'wins', format, as_of: '41.0', limit: 5, cursor: 'c' })).toEqual([
    'as of snapshot 41.0',
    '5 rows at most',
    'from where an answer ended',
  ]);
  expect(wordsOf({ job: 'wins', format, as_of: 1_769_860_800_000_000 })).toEqual(['as of 2026-01-31 12:00:00Z']);
  expect(wordsOf({ job: 'wins', format, history: true })).toEqual(['every change']);
  expect(wordsOf({ job: 'wins', format, history: false })).toEqual(['all results']);
});
