import { expect, test } from 'vitest';
import { squigglesOf } from './offsets';

const TEXT = 'SELECT ONLINE a.x\nFROM a, b';

const underlined = (line: number, column: number, endLine: number, endColumn: number) => {
  const span = { line, column, end_line: endLine, end_column: endColumn };
  const [found] = squigglesOf(TEXT, [{ detail: 'wrong', span }]);
  return found && TEXT.slice(found.from, found.to);
};

test('lines and columns count from 1, and the end is past the last character', () => {
  expect(underlined(1, 15, 1, 18)).toBe('a.x');
  expect(underlined(2, 6, 2, 7)).toBe('a');
  expect(underlined(1, 15, 2, 5)).toBe('a.x\nFROM');
});

test('columns count characters, of which some are two units of a text', () => {
  const text = "SELECT ONLINE a.x\r\nFROM a WHERE a.x = '\u{1f600}\u{1f600}' AND a.y = 1";
  const span = { line: 2, column: 29, end_line: 2, end_column: 32 };
  const [found] = squigglesOf(text, [{ detail: 'wrong', span }]);
  // In the editor a line ends with one character.
  expect(found && text.replace('\r\n', '\n').slice(found.from, found.to)).toBe('a.y');
});

test('an empty place underlines one character, and one past the end the last', () => {
  expect(underlined(2, 6, 2, 6)).toBe('a');
  expect(underlined(9, 1, 9, 1)).toBe('b');
});

test('a mistake without a place is of all of it', () => {
  expect(squigglesOf(TEXT, [{ detail: 'no streams', span: null }])).toEqual([
    { from: 0, to: TEXT.length, message: 'no streams' },
  ]);
});
