import { expect, test } from 'vitest';
import { Problem } from '../../../api/problem';
import { errorAt, errorsOf, errorsOfRows, isAllShown, spanOf, without } from './fieldErrors';

const problem = (code: string, ...errors: [pointer: string | null, detail: string][]) =>
  new Problem({
    type: 'about:blank',
    code,
    status: 422,
    title: 'The request is wrong',
    detail: 'there is a stream "orders" already',
    errors: errors.map(([pointer, detail]) => ({ pointer, detail })),
  });

test('messages stand at the field that their pointer leads to', () => {
  const errors = errorsOf(
    problem(
      'invalid',
      ['/spec/shed/capacity', 'is missing'],
      ['/name', 'is wrong'],
      ['/spec/client/a.b', 'no'],
      [null, 'x'],
    ),
  );
  expect(errors).toEqual({ 'shed.capacity': 'is missing', name: 'is wrong', 'client.a.b': 'no' });
  expect(errorAt(errors, 'shed.capacity')).toBe('is missing');
  expect(errorAt(errors, 'client')).toBe('no');
  expect(errorAt(errors, 'cl')).toBeUndefined();
});

test('a name that is taken stands at the name, and a conflict without one nowhere', () => {
  expect(errorsOf(problem('conflict'), 'name')).toEqual({ name: 'there is a stream "orders" already' });
  expect(errorsOf(problem('conflict'))).toEqual({});
});

test('what no field shows is left to be said', () => {
  expect(isAllShown({ 'options.keys': 'x' }, ['options', 'name'])).toBe(true);
  expect(isAllShown({ options: 'x', novelty: 'y' }, ['options'])).toBe(false);
  expect(isAllShown({}, ['options'])).toBe(false);
});

test('a field that changed is no longer wrong, nor is a pair of it', () => {
  const errors = { schema: 'a', 'schema#2': 'b', 'shed.base': 'c', schemata: 'd' };
  expect(without(errors, 'schema')).toEqual({ 'shed.base': 'c', schemata: 'd' });
});

test('a message about a list stands at the row that it names, and below the list if there is none', () => {
  const told = (pointer: string, detail: string, names: string[]) =>
    errorsOfRows(errorsOf(problem('invalid', [pointer, detail])), pointer.split('/')[2] ?? '', names);
  expect(told('/spec/schema', 'column "k": "foo" is not a column type', ['ts', ' k'])).toMatchObject({
    rows: { 1: 'column "k": "foo" is not a column type' },
    rest: undefined,
  });
  expect(Object.keys(told('/spec/options', 'zipf.r has no option "foo"; options are', ['foo']).rows)).toEqual(['0']);
  expect(Object.keys(told('/spec/client/a.b', 'may not be set', ['a', 'a.b']).rows)).toEqual(['1']);
  const twins = 'columns "TS" and "ts" differ by case only';
  expect(told('/spec/schema', twins, ['TS', 'ts'])).toEqual({ rows: {}, rest: twins });
});

test('in a text, a message belongs to the innermost part there is', () => {
  const spans = new Map([
    ['', { from: 0, to: 90 }],
    ['/client', { from: 5, to: 50 }],
    ['/client/a.b', { from: 10, to: 20 }],
    ['/shed/base', { from: 60, to: 70 }],
  ]);
  expect(spanOf(spans, 'client.a.b')?.from).toBe(10);
  expect(spanOf(spans, 'client.x')?.from).toBe(5);
  expect(spanOf(spans, 'shed.base')?.from).toBe(60);
  expect(spanOf(spans, 'time')?.from).toBe(0);
});
