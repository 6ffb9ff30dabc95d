import { expect, test } from 'vitest';
import type { RejectedRow } from '../../../api/types';
import { CLIPPED, clipped, placeOf, textOf, visible } from './texts';

const row: RejectedRow = {
  id: '1-0',
  stream: 'bids',
  reason: 'bad_value',
  batch: 7,
  at: '2026-01-01T00:00:00.000000Z',
  source: 'a/1.csv',
  unit: 'line',
  position: 3,
  detail: 'why',
  record: '{"id":',
  record_base64: null,
  truncated: false,
};

test('characters that turn text around or cannot be seen are shown by their numbers', () => {
  expect(visible('a\u202eb\u0000c\u200bd\x1b[2J')).toBe('a\\u202eb\\u0000c\\u200bd\\u001b[2J');
  expect(visible('tab\t, line\nbreak, 🍎👩‍🚀, é')).toBe('tab\t, line\nbreak, 🍎👩‍🚀, é');
});

test('a row without a text says what it has', () => {
  expect(textOf(row)).toBe('{"id":');
  expect(textOf({ ...row, record: null, record_base64: '/w==' })).toBe('(base64) /w==');
  expect(textOf({ ...row, record: null })).toBe('(no value)');
  expect(textOf({ ...row, record: '' })).toBe('');
  expect(textOf({ ...row, record: '3,cyd\n' })).toBe('3,cyd');
  expect(textOf({ ...row, record: '3,"c\nyd"\r\n' })).toBe('3,"c\nyd"');
  expect(placeOf({ ...row, source: 'a\u202e.csv' })).toBe('a\\u202e.csv, line 3');
});

test('a long text and one of several lines are clipped, a short one is not', () => {
  expect(clipped('x'.repeat(CLIPPED))).toBeNull();
  expect(clipped('x'.repeat(CLIPPED + 1))).toBe(`${'x'.repeat(CLIPPED)}…`);
  expect(clipped('one\ntwo')).toBe('one…');
});
