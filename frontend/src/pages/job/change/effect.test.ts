import { expect, test } from 'vitest';
import { effectOf } from './effect';

const diff = (startsAnew: boolean) => ({ changes: [], starts_anew: startsAnew });

test('state is lost only where there is some, and the change does not fit it', () => {
  expect(effectOf({ wanted: 'running', generation: 3 }, diff(true)).losesState).toBe(true);
  expect(effectOf({ wanted: 'running', generation: 0 }, diff(true)).losesState).toBe(false);
  expect(effectOf({ wanted: 'running', generation: 3 }, diff(false)).losesState).toBe(false);
});

test('a job that is to run restarts with the change, and another one holds it for later', () => {
  expect(effectOf({ wanted: 'running', generation: 3 }, diff(false)).text).toContain('restarts after the batch');
  expect(effectOf({ wanted: 'stopped', generation: 3 }, diff(false)).text).toContain('next start');
});
