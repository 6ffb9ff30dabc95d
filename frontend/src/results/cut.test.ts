import { Blob } from 'node:buffer';
import { expect, test } from 'vitest';
import { cutOf, wordsOfCut } from './cut';
import type { FileFormat } from './formats';

const LIMITS = { rows: 10_000_000, bytes: 1_073_741_824, seconds: 60 };
const CUT = { rows_given: 7, cursor: 'eyJ9', truncated: true, stopped_by: 'time', limits: LIMITS, not_finite: 0 };
const WHOLE = { ...CUT, cursor: null, truncated: false, stopped_by: null };
/** As Python writes it, and the files have it. */
const python = (end: object) => JSON.stringify(end).replaceAll(':', ': ').replaceAll(',', ', ');

const BEFORE = 'PAR1 rows {"rows_given": 1, "truncated": true} \0\uFFFD\n more rows {"rows_given" ';
const AFTER = '\0\x1C\x00}{ PAR1';

const cutIn = (text: string, format: FileFormat) => cutOf(new Blob([text]) as unknown as globalThis.Blob, format);

const FOUND = { rows_given: 7, stopped_by: 'time' };

test('lines end with where they were cut off', async () => {
  expect(await cutIn(`"price"\n1\n2\n# cut off: ${python(CUT)}\n`, 'csv')).toEqual(FOUND);
  expect(await cutIn(`{"price":1}\n${JSON.stringify({ $end: CUT })}\n`, 'ndjson')).toEqual(FOUND);
});

test('an answer that failed on the way is no whole answer', async () => {
  const $end = { ...CUT, stopped_by: 'error', error: { code: 'store', errors: [{ detail: 'gone {' }] } };
  const text = `{"price":1}\n${JSON.stringify({ $end })}\n`;
  expect(await cutIn(text, 'ndjson')).toEqual({ ...FOUND, stopped_by: 'error' });
});

test('lines that say nothing are all of the answer, whatever stands in them', async () => {
  expect(await cutIn('"price"\n1\n', 'csv')).toBeNull();
  expect(await cutIn(`"note"\n"# cut off: ${python(CUT).replaceAll('"', '""')}"\n`, 'csv')).toBeNull();
  expect(await cutIn('{"price":1}\n', 'ndjson')).toBeNull();
  expect(await cutIn(`${JSON.stringify({ note: { $end: CUT } })}\n`, 'ndjson')).toBeNull();
  expect(await cutIn('{"$end":7,"price":1}\n', 'ndjson')).toBeNull();
  expect(await cutIn('', 'csv')).toBeNull();
  expect(await cutIn('', 'ndjson')).toBeNull();
});

test.each(['parquet', 'arrow'] as const)('%s has the end of every answer among other bytes', async (format) => {
  expect(await cutIn(`${BEFORE}${python(CUT)}${AFTER}`, format)).toEqual(FOUND);
  expect(await cutIn(`${BEFORE}${python(WHOLE)}${AFTER}`, format)).toBeNull();
  expect(await cutIn('no such thing', format)).toBeNull();
});

test('the end is found in a large file', async () => {
  expect(await cutIn(`${'"some row"\n'.repeat(100_000)}# cut off: ${python(CUT)}\n`, 'csv')).toEqual(FOUND);
});

test('what cut a file off is told, its own limit too', () => {
  expect(wordsOfCut('wins.csv', { rows_given: 12_345, stopped_by: 'time' })).toBe(
    'wins.csv has 12,345 rows, cut off by time: there may be more',
  );
  expect(wordsOfCut('wins.csv', { rows_given: 100, stopped_by: 'limit' })).toBe(
    'wins.csv has 100 rows, its limit: there may be more',
  );
});
