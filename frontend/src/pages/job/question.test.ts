import { expect, test } from 'vitest';
import { EMPTY_FORM, questionOf, withoutLimit } from './question';

test('empty fields are not asked about', () => {
  expect(questionOf('wins', EMPTY_FORM)).toEqual({ job: 'wins', limit: 200 });
  expect(questionOf('wins', { ...EMPTY_FORM, key: ' 7 ', where: 'price > 1', limit: 9 })).toEqual({
    job: 'wins',
    limit: 9,
    key: '7',
    where: 'price > 1',
  });
});

test('a file has all of the answer, and not only what the page shows', () => {
  const question = questionOf('wins', { ...EMPTY_FORM, from: '2026-01-31', limit: 10_000 });
  expect(withoutLimit(question)).toEqual({ job: 'wins', from: '2026-01-31', limit: null });
  expect(question.limit).toBe(10_000);
});
