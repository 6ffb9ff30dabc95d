import { expect, test } from 'vitest';
import { placeOf, readJson, readObject } from './json';

const mistakeIn = (text: string) => {
  const { mistake } = readJson(text);
  if (mistake === null) return null;
  const { line, column } = placeOf(text, mistake.from);
  return `${String(line)}:${String(column)} ${mistake.message}`;
};

test.each([
  ['{"a": 1,\n "b" 2}', '2:6 a colon is missing'],
  ['{"a": 1\n "b": 2}', '2:2 a comma or } is missing'],
  ['[1, 2', '1:6 a comma or ] is missing'],
  ['{"a": 1,}', '1:9 a name in double quotes is missing'],
  ["{'a': 1}", '1:2 a name in double quotes is missing'],
  ['{"a": ts}', '1:7 ts is no value; texts stand in double quotes'],
  ['{"a": 01}', '1:7 01 is no value; texts stand in double quotes'],
  ['{"a": }', '1:7 a value is missing'],
  ['', '1:1 a value is missing'],
  ['{} {}', '1:4 nothing may follow the end'],
  ['{"a": "x\ny"}', '1:7 this text does not end on its line, or has a \\ that means nothing'],
  ['{"a": 1, "a": 2}', '1:10 "a" is there already'],
  ['{"seed": 9007199254740993}', '1:10 is larger than a browser keeps exactly; send it from Python'],
  ['['.repeat(200), '1:102 is nested too deeply'],
])('%j is wrong at %s', (text, expected) => {
  expect(mistakeIn(text)).toBe(expected);
});

test.each([
  '{}',
  ' [ ] ',
  '{"a": [1, -2.5e-3, true, null, "x\\n\\u00e9\\"", {"b": {}}], "ö": ""}',
  '"a text"',
  '12345678901234567890.5',
])('%j is right, and means what browsers take it for', (text) => {
  expect(readJson(text)).toMatchObject({ mistake: null, value: JSON.parse(text) as unknown });
});

test('each part has its place', () => {
  const text = '{"shed": {"base": 0.5}, "list": [1, 22]}';
  const reading = readJson(text);
  if (reading.mistake !== null) throw new Error(reading.mistake.message);
  const at = (pointer: string) => {
    const span = reading.spans.get(pointer);
    return span && text.slice(span.from, span.to);
  };
  expect([at('/shed/base'), at('/list/1'), at('')]).toEqual(['0.5', '22', text]);
});

test('an entry is an object', () => {
  expect(readObject('[1]').mistake?.message).toContain('no object');
  expect(readObject('{"a": 1}')).toMatchObject({ value: { a: 1 }, mistake: null });
});
