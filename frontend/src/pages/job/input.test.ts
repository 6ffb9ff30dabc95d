import { expect, test } from 'vitest';
import { reportOf, type Report } from '../../api/figures';
import { inputOf, phaseOf } from './input';

const T0_S = 1_767_225_600;
const RUNNING = { phase: 'running', observed: 'running', reason: null };
const ENDED = { phase: 'stopped', observed: 'stopped', reason: 'reached the end' };

const report = (s: number, tuples: number, figures: object = {}): Report =>
  reportOf({
    at: new Date((T0_S + s) * 1000).toISOString(),
    span_s: 1,
    generation: 1,
    figures: { seconds: 1, tuples: { r: tuples, s: 0 }, bounded: ['r', 's'], ...figures },
  });

test('input comes as long as tuples do, and a short pause is none', () => {
  expect(inputOf(RUNNING, [report(0, 5)]).kind).toBe('coming');
  expect(inputOf(RUNNING, [report(0, 5), report(3, 0)]).kind).toBe('coming');
  expect(inputOf(RUNNING, []).kind).toBe('coming');
});

test('bounded streams without tuples are finished, others are silent', () => {
  expect(inputOf(RUNNING, [report(0, 5), report(9, 0)])).toEqual({ kind: 'finished', sinceS: T0_S });
  const one = { bounded: ['r'] };
  expect(inputOf(RUNNING, [report(0, 5, one), report(9, 0, one)])).toEqual({ kind: 'silent', sinceS: T0_S });
});

test('a job that never had a tuple says so after a while', () => {
  expect(inputOf(RUNNING, [report(2, 0)]).kind).toBe('coming');
  expect(inputOf(RUNNING, [report(40, 0, { quiet_seconds: 39, bounded: [] })])).toEqual({ kind: 'silent', sinceS: null });
});

test('a job that ran until the end of its streams is finished, and one that was stopped is not', () => {
  expect(inputOf(ENDED, [report(0, 5)]).kind).toBe('finished');
  expect(phaseOf(ENDED)).toBe('finished');
  expect(phaseOf({ ...ENDED, reason: null })).toBe('stopped');
  expect(inputOf({ ...ENDED, reason: null }, [report(0, 5), report(9, 0)]).kind).toBe('coming');
});
