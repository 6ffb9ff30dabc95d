import { expect, test } from 'vitest';
import { Problem } from '../../api/problem';
import { startOf, wrongIn } from './startQuery';

const refusal = (errors: { pointer?: string; detail: string }[]) =>
  new Problem({ type: '', title: 'The request is wrong', status: 422, code: 'invalid', detail: 'wrong', errors });

test('a query is started under its name', () => {
  expect(startOf(' cheap ', 'SELECT')).toEqual({ queries: { cheap: { query: 'SELECT' } } });
});

test('what is wrong stands where it was typed, and all else is told as it is', () => {
  const inQuery = { pointer: '/queries/cheap/query', detail: 'no such column' };
  expect(wrongIn('cheap', null)).toEqual({ ofName: undefined, ofQuery: [], elsewhere: false });
  expect(wrongIn('cheap', refusal([inQuery]))).toEqual({ ofName: undefined, ofQuery: [inQuery], elsewhere: false });
  expect(wrongIn('main', refusal([{ pointer: '/queries/main', detail: 'is taken' }]))).toEqual({
    ofName: 'is taken',
    ofQuery: [],
    elsewhere: false,
  });
  expect(wrongIn('cheap', refusal([inQuery, { pointer: '/run', detail: 'no' }])).elsewhere).toBe(true);
  expect(wrongIn('cheap', new Error('away')).elsewhere).toBe(true);
});
