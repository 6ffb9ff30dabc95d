import { expect, test } from 'vitest';
import { adviceOn, droppedText, effectOf } from './effect';

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

test('what begins anew says what it drops, and whether that was needed', () => {
  const drops = { state_at: '2026-11-28T20:00:00.000Z', results: 1250, could_go_on: false };
  const { text } = effectOf({ wanted: 'running', generation: 3 }, { ...diff(true), drops });
  expect(text).toContain('does not fit');
  expect(text).toContain("The state of 2026-11-28 20:00:00.000 UTC is dropped, and 1,250 results are no longer the job's.");
  const unknown = { state_at: null, results: null, could_go_on: null };
  expect(droppedText(unknown)).toBe("The state is dropped, and all results so far are no longer the job's.");
  expect(effectOf({ wanted: 'running', generation: 3 }, { ...diff(true), drops: unknown }).text).toContain('may not fit');
  const advice = [true, false, null].map((could) => adviceOn({ ...drops, could_go_on: could }));
  expect(advice[0]).toContain('restart it instead');
  expect(new Set(advice).size).toBe(3);
});
