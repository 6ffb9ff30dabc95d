import { expect, test } from 'vitest';
import { streamPath } from './address';
import { badOf } from './countBad';
import { differencesOf } from './differences';
import { timesIn, widenedIn } from './form/guesses';
import { mistakesInSecrets, secretsOf } from './form/secrets';
import { exampleRow, rowsOf } from './rows';

test('a stream whose name is the address of a page is found by its id', () => {
  expect(streamPath({ id: 'str_1', name: 'orders' })).toBe('/streams/orders');
  expect(streamPath({ id: 'str_1', name: 'new' })).toBe('/streams/str_1');
});

test('credentials stay unless they are written anew, or are to go', () => {
  const pairs = [
    { name: 'sasl.password', value: 'x' },
    { name: '', value: '' },
  ];
  expect(secretsOf('keep', pairs)).toBeUndefined();
  expect(secretsOf('remove', pairs)).toEqual({});
  expect(secretsOf('replace', pairs)).toEqual({ 'sasl.password': 'x' });
  expect(secretsOf('replace', [])).toBeUndefined();
  expect(mistakesInSecrets(true, 'replace', [])).toHaveProperty('secrets');
  expect(mistakesInSecrets(false, 'replace', [])).toEqual({});
  expect(mistakesInSecrets(true, 'keep', [])).toEqual({});
});

test('rows are objects, one a line, and a mistake has its line', () => {
  expect(rowsOf('{"a": 1.10}\n\n{"a":2}\n')).toEqual({ lines: ['{"a": 1.10}', '{"a":2}'], mistake: null });
  expect(rowsOf('{"a": 1}\n{"a": }').mistake).toBe('Line 2, column 7: a value is missing');
  expect(rowsOf('{"a": 1}\n[2]').mistake).toContain('Line 2');
  expect(rowsOf('\n ').mistake).toContain('no rows');
});

test('an example has a value of each type, and its time is now', () => {
  const schema = { at: 'int64', k: 'int32', price: 'decimal(12,2)', name: 'string', ok: 'bool', day: 'date' };
  const now = new Date('2026-01-31T12:00:00Z');
  expect(exampleRow({ schema, time: 'at', time_unit: 's' }, now)).toEqual({
    at: 1_769_860_800,
    k: 1,
    price: 1.5,
    name: 'text',
    ok: true,
    day: '2026-01-31',
  });
  expect(exampleRow({ schema: { at: 'int64' }, time: 'at' }, now)).toEqual({ at: 1_769_860_800_000_000 });
});

test('two entries differ by field, also in what one of them lacks', () => {
  expect(differencesOf({ a: 1, b: { c: 1 }, d: 0 }, { a: 1, b: { c: 2 }, e: null })).toEqual([
    { field: 'b', theirs: '{"c":1}', mine: '{"c":2}' },
    { field: 'd', theirs: '0', mine: null },
    { field: 'e', theirs: null, mine: 'null' },
  ]);
});

test('of a stream that cannot be read nobody says that it has no bad records', () => {
  const seen = { columns: [], rows: [], rows_seen: 0, skew: {}, rate_per_s: null, times: [], widened: [] };
  expect(badOf(undefined)).toBeUndefined();
  expect(badOf({ ...seen, bad_records: {} })).toBe('no bad records');
  expect(badOf({ ...seen, bad_records: { 'event time is NULL': 2 } })).toBe('2 bad records');
});

test('what was guessed about columns is told in a sentence', () => {
  expect(widenedIn({ column: 'amount', type: 'string', instead: 'float64', values: 1, example: 'n/a' })).toBe(
    'amount became string because of 1 value, such as "n/a". Give it the type float64 under Columns, and that record is bad.',
  );
  expect(timesIn({ times: [{ name: 'ts', time_unit: null }, { name: 'at', time_unit: 'ms' }] })).toBe(
    'May be the event time: ts, at (whole numbers, unit ms).',
  );
});
