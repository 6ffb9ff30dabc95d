import { expect, test } from 'vitest';
import { Problem } from '../api/problem';
import { formErrors } from './places';

const problem = (status: number, ...errors: { pointer?: string; detail: string }[]) =>
  new Problem({ type: '', code: 'invalid', title: '', status, detail: 'all of it', errors });

test('an error stands at its field', () => {
  const error = problem(422, { pointer: '/name', detail: 'is no name' }, { pointer: '/name', detail: 'nor this' });
  expect(formErrors(error, ['/name', '/role'])).toEqual({ at: { '/name': 'is no name' }, rest: null });
});

test('what no field can show is told beside the form', () => {
  const error = problem(422, { pointer: '/name', detail: 'is no name' }, { pointer: '/age', detail: 'is too high' });
  expect(formErrors(error, ['/name'])).toEqual({ at: { '/name': 'is no name' }, rest: error });
  expect(formErrors(problem(503), ['/name']).rest).not.toBeNull();
  expect(formErrors(null, ['/name'])).toEqual({ at: {}, rest: null });
});

test('a conflict is of the name that is taken, where there is one', () => {
  expect(formErrors(problem(409), ['/name'], '/name')).toEqual({ at: { '/name': 'all of it' }, rest: null });
  expect(formErrors(problem(409), ['/name']).rest).not.toBeNull();
  const short = problem(422, { pointer: '/password', detail: 'is too short' });
  expect(formErrors(short, ['/name', '/password'], '/name').at).toEqual({ '/password': 'is too short' });
});
