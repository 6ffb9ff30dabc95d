import { expect, test } from 'vitest';
import { Problem } from '../../../api/problem';
import { mistakesOf } from './mistakes';

const FIELDS = ['/run/slots', '/results/select'];
const refusal = (errors: { pointer?: string; detail: string }[]) =>
  new Problem({ type: '', title: 'The request is wrong', status: 422, code: 'invalid', detail: 'wrong', errors });

test('mistakes go to their fields, those of the query to the query, and all others are told elsewhere', () => {
  const diagnostics = {
    valid: false,
    columns: [],
    summary: null,
    diagnostics: [{ pointer: '/query', detail: 'no column', span: { line: 1, column: 2, end_line: 1, end_column: 3 } }],
  };
  const wrong = refusal([
    { pointer: '/run/slots', detail: 'must be at least 1' },
    { pointer: '/results/select/0', detail: 'no such column' },
    { pointer: '/streams/r/client', detail: 'is not allowed' },
  ]);
  expect(mistakesOf(diagnostics, wrong, FIELDS)).toEqual({
    ofQuery: diagnostics.diagnostics,
    at: { '/run/slots': 'must be at least 1', '/results/select': 'no such column' },
    elsewhere: ['streams/r/client is not allowed'],
    count: 4,
  });
});

test('of a refusal without a place, such as that of a version, nothing is at a field', () => {
  expect(mistakesOf(undefined, refusal([]), FIELDS).count).toBe(0);
  expect(mistakesOf(undefined, null, FIELDS).count).toBe(0);
});
