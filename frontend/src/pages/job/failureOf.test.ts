import { expect, test } from 'vitest';
import { failureOf } from './failureOf';

const seen = (given: object) => ({
  wanted: 'running',
  observed: 'failed',
  observed_since: 't',
  phase: 'recovering',
  generation: 4,
  failures: 2,
  reason: 'record 0: a string',
  ...given,
});

test('the generation that failed, its first cause, and what comes next', () => {
  expect(failureOf(seen({}))).toMatchObject({ generation: 4, cause: 'record 0: a string', since: 't' });
  expect(failureOf(seen({}))?.next).toContain('tried again by itself');
  expect(failureOf(seen({ wanted: 'stopped' }))?.next).toContain('until somebody starts it');
  const reason = 'a mistake; it failed so too often, and is started again when somebody starts or changes it';
  expect(failureOf(seen({ phase: 'failed', failures: 5, reason }))?.next).toBe('');
});

test('while the next generation starts, it is the one before that failed', () => {
  expect(failureOf(seen({ observed: 'starting' }))).toMatchObject({ generation: 3, since: null });
});

test('a job that runs, or waits for another reason, has not failed', () => {
  expect(failureOf(seen({ observed: 'running', reason: null }))).toBeNull();
  expect(failureOf(seen({ observed: 'stopped', failures: 0 }))).toBeNull();
  expect(failureOf(seen({ observed: 'starting', failures: 0 }))).toBeNull();
  expect(failureOf(seen({ wanted: 'deleted' }))).toBeNull();
});
