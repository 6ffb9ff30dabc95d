import { expect, test } from 'vitest';
import { Problem } from '../../api/problem';
import { startOf, verdictOn, wrongIn } from './startQuery';

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

test('a query with which a job that has run would begin anew is not started beside the others', () => {
  const anew = { changes: [], starts_anew: true };
  expect(verdictOn(anew, { generation: 0 }, []).valid).toBe(true);
  expect(verdictOn({ ...anew, starts_anew: false }, { generation: 3 }, []).valid).toBe(true);
  const refused = verdictOn(anew, { generation: 3 }, []);
  expect(refused.valid).toBe(false);
  expect(refused.diagnostics.map(({ detail }) => detail)).toEqual([
    expect.stringContaining('make a job of its own of this one'),
  ]);
  const reason = 'this reads x of bids, and of stored tuples there is id';
  const told = [{ field: 'queries.cheap.query', before: null, after: 'SELECT', effect: 'starts_anew', reason }];
  expect(verdictOn({ changes: told, starts_anew: true }, { generation: 3 }, []).diagnostics).toEqual([{ detail: reason }]);
  const wrong = [{ pointer: '/queries/cheap/query', detail: 'no such column' }];
  expect(verdictOn(undefined, { generation: 3 }, wrong)).toMatchObject({ valid: false, diagnostics: wrong });
});
