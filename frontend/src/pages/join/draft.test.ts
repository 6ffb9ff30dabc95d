import { beforeEach, expect, test, vi } from 'vitest';
import { bodyOf, EMPTY, isTouched, keepDraft, keptDraft, withField } from './draft';

const typed = { name: 'wins', start: false, query: 'SELECT', fields: { 'run.slots': '2', 'results.store': 'sqlite' } };

beforeEach(() => sessionStorage.clear());

test('a draft is found again by who typed it, and by nobody else', () => {
  keepDraft('usr_1', typed);
  expect(keptDraft('usr_1')).toEqual(typed);
  expect(keptDraft('usr_2')).toEqual(EMPTY);
  keepDraft('usr_1', EMPTY);
  expect(sessionStorage).toHaveLength(0);
});

test('what is kept and is no draft is none, and a browser that keeps nothing is no failure', () => {
  keepDraft('usr_1', typed);
  const key = sessionStorage.key(0) ?? '';
  for (const kept of ['{', 'null', '[]', '{"name": "x"}', JSON.stringify({ ...typed, fields: { a: 1 } })]) {
    sessionStorage.setItem(key, kept);
    expect(keptDraft('usr_1')).toEqual(EMPTY);
  }
  const full = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  expect(() => keepDraft('usr_1', typed)).not.toThrow();
  full.mockRestore();
});

test('a section in which nothing is set is not sent, and what is set is sent as the API takes it', () => {
  expect(bodyOf({ query: 'q', fields: {} })).toEqual({ query: 'q', operator: { name: 'auto' } });
  const fields = { 'operator.ordering': 'total', 'run.slots': '2', 'run.until_end': 'true', 'results.retain': '30d' };
  expect(bodyOf({ query: 'q', fields })).toEqual({
    query: 'q',
    operator: { name: 'auto', ordering: 'total' },
    run: { slots: 2, until_end: true },
    results: { retain: '30d' },
  });
});

test('a field that is emptied is as if it was never touched', () => {
  const touched = withField(EMPTY, 'run.slots', '2');
  expect([isTouched(EMPTY), isTouched(touched)]).toEqual([false, true]);
  expect(withField(touched, 'run.slots', '')).toEqual(EMPTY);
});
