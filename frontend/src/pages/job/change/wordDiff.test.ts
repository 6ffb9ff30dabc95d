import { expect, test } from 'vitest';
import { wordDiff, type Part } from './wordDiff';

const shown = (parts: Part[]) =>
  parts.map(({ kind, text }) => ({ same: text, gone: `[-${text}-]`, new: `[+${text}+]` })[kind]).join('');

test('only what differs is marked', () => {
  expect(shown(wordDiff('WITHIN 10 SECONDS', 'WITHIN 20 SECONDS'))).toBe('WITHIN [-10-][+20+] SECONDS');
  expect(shown(wordDiff('a.x, b.y FROM a, b', 'a.x, b.y, b.z FROM a, b'))).toBe('a.x, b.y[+, b.z+] FROM a, b');
});

test('words that were replaced in a row are one change', () => {
  expect(shown(wordDiff('WITHIN 10 SECONDS', 'WITHIN 5 MINUTES'))).toBe('WITHIN [-10 SECONDS-][+5 MINUTES+]');
});

test('the two texts can be read out of the parts again', () => {
  const before = 'SELECT a.x FROM a, b WHERE a.k = b.k AND a.v > 5 WITHIN 10 ROWS';
  const after = 'SELECT b.x FROM b, a WHERE b.k = a.k WITHIN (0 SECONDS, 10 SECONDS)';
  const parts = wordDiff(before, after);
  const without = (kind: Part['kind']) => parts.flatMap((part) => (part.kind === kind ? [] : [part.text])).join('');
  expect(without('new')).toBe(before);
  expect(without('gone')).toBe(after);
});

test('nothing, all of it, and texts that are too long to compare', () => {
  expect(wordDiff('', '')).toEqual([]);
  expect(shown(wordDiff('', 'a'))).toBe('[+a+]');
  const long = (word: string) => Array.from({ length: 3_000 }, (_, number) => `${word}${String(number)}`).join(' ');
  expect(wordDiff(long('a'), long('b')).map(({ kind }) => kind)).toEqual(['gone', 'new']);
});
