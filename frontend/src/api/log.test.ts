import { expect, test } from 'vitest';
import { grown } from './log';

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, number) => `line ${String(from + number)}\n`).join('');

test('what is new is added to what was there, also after its beginning fell off', () => {
  const first = grown(undefined, lines(0, 1_000));
  const second = grown(first, lines(500, 1_200));
  expect(second).toEqual({ text: lines(0, 1_200), hasGap: false });
  expect(grown(second, lines(500, 1_200))).toBe(second);
});

test('a short log is found by all of it', () => {
  expect(grown(grown(undefined, 'a\n'), 'a\nb\na\n').text).toBe('a\nb\na\n');
  expect(grown(grown(undefined, ''), 'a\n')).toEqual({ text: 'a\n', hasGap: false });
});

test('what repeats is not taken for the end of the last look', () => {
  const trace = 'at some.place.in.Java\n'.repeat(400);
  const first = grown(undefined, `${lines(0, 2_000)}one failed\n${trace}`);
  const second = grown(first, `${lines(1_000, 2_000)}one failed\n${trace}two failed\n${trace}`);
  expect(second.text).toBe(`${first.text}two failed\n${trace}`);
});

test('a log that ran away is told, and not glued together', () => {
  expect(grown(grown(undefined, lines(0, 1_000)), lines(5_000, 6_000))).toEqual({
    text: lines(5_000, 6_000),
    hasGap: true,
  });
});

test('no more than the page can hold is kept, from a line on', () => {
  let log = grown(undefined, lines(0, 1_000));
  for (let from = 1_000; from < 300_000; from += 20_000) log = grown(log, lines(from - 1_000, from + 20_000));
  expect(log.text.length).toBeLessThanOrEqual(2_000_000);
  expect(log.text.startsWith('line ')).toBe(true);
  expect(log.text.endsWith('line 300999\n')).toBe(true);
});
