import { expect, test } from 'vitest';
import {
  formatBytes,
  formatCell,
  formatDuration,
  formatRate,
  formatShare,
  formatSince,
  kindOf,
} from './format';

test.each([
  [0, '0 ms'],
  [0.25, '0.3 ms'],
  [1.5, '1.5 ms'],
  [250, '250 ms'],
  [1_000, '1 s'],
  [1_540, '1.5 s'],
  [65_000, '1.1 min'],
  [43 * 60_000, '43 min'],
  [28_074_475_145, '325 d'],
  [-1_500, '-1.5 s'],
])('%d ms are shown as %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

test.each([
  [0, '0 B'],
  [1_023, '1,023 B'],
  [181_256, '177 KiB'],
  [5 * 1024 ** 3, '5.0 GiB'],
])('%d bytes are shown as %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

test('what is not known is a dash', () => {
  expect([formatRate(null), formatBytes(undefined), formatDuration(null), formatCell(null), formatDuration(undefined)]).toEqual(
    Array(5).fill('–'),
  );
});

test('large whole numbers come as texts, and are shown as they came', () => {
  expect(formatCell('9007199254740993')).toBe('9007199254740993');
  expect(formatCell([1, 2])).toBe('[1,2]');
});

test('times, shares and types', () => {
  expect(formatSince('2026-01-01T00:00:05Z', Date.parse('2026-01-01T00:00:04Z'))).toBe('0 ms');
  expect(formatSince('2026-01-01T00:00:05Z', Date.parse('2026-01-01T00:05:05Z'))).toBe('5 min');
  expect(formatShare(0.0312)).toBe('3.1 %');
  expect(['int64', 'float32', 'decimal(9,2)', 'timestamp', 'string'].map(kindOf)).toEqual([
    'number',
    'number',
    'number',
    'time',
    'text',
  ]);
});
