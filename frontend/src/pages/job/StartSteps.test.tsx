import { MantineProvider } from '@mantine/core';
import { cleanup, render } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Job } from '../../api/types';
import { startingOf } from './begun';
import { StartSteps } from './StartSteps';

const TAKEN = '2026-01-01T00:00:10.000Z';
const STEPS = { launch: 0.4, process: 0.9, spark: 1.1, state: 0.7, first_batch: 0.9 };
const run = { generation: 2, host: 'here', pid: 7, since: TAKEN, alive_until: null, ended: false };
const stopped = {
  phase: 'stopped',
  wanted: 'stopped',
  wanted_since: '2026-01-01T00:00:09.600Z',
  observed: 'stopped',
  observed_since: '2026-01-01T00:00:00.000Z',
  generation: 1,
  last_run: { ...run, generation: 1, ended: true, steps: STEPS },
  last_start: null,
};
const asked = { ...stopped, phase: 'starting', wanted: 'running' };
const entered = { ...asked, observed: 'starting', observed_since: TAKEN, generation: 2 };
const at = (steps: object, phase = 'starting') => ({
  ...entered,
  phase,
  observed: phase,
  last_run: { ...run, steps },
});

const told = (job: object) => {
  cleanup();
  const { container } = render(
    <MantineProvider env="test">
      <StartSteps job={job as Job} />
    </MantineProvider>,
  );
  return container.querySelector('p')?.textContent;
};

beforeEach(() => vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:15.000Z') }));
afterEach(() => vi.useRealTimers());

test('while a job starts, its steps are told one by one, with the one that it is at', () => {
  expect(told(stopped)).toBeUndefined();
  expect(startingOf(asked as unknown as Job)).toMatchObject({ done: '', step: 'launch', since: asked.wanted_since });
  expect(told(at({}))).toMatch(/^Starting: process for /);
  expect(told(at({ launch: 0.4 }))).toMatch(/^Starting: launch 400 ms, process for /);
  const third = at({ launch: 0.4, process: 0.9 });
  expect(told(third)).toMatch(/^Starting: launch 400 ms, process 900 ms, Spark for /);
  // Counted from the lease, which was taken when the launch was over.
  expect(startingOf(third as unknown as Job)?.since).toBe('2026-01-01T00:00:10.900Z');
  const fourth = { launch: 0.4, process: 0.9, spark: 1.1, state: 0.7 };
  expect(told(at(fourth, 'running'))).toMatch(/Spark 1\.1 s, state 700 ms, first batch for /);
});

test('a job that found nothing to read waits, and tells later when its first look was', () => {
  const looked = { launch: 0.4, process: 0.9, spark: 1.1, state: 0.7, first_look: 0.2 };
  expect(told(at(looked, 'running'))).toBeUndefined();
  const steps = { ...looked, first_batch: 29 };
  const last_start = { generation: 2, at: null, cause: 'restart', warm: false, seconds: 32.3, steps };
  expect(told({ ...at(steps, 'running'), last_start })).toMatch(/state 700 ms, first look 200 ms, first batch 29 s\)$/);
});

test('afterwards it is told what the start took, and by what', () => {
  const last_start = { generation: 2, at: null, cause: 'restart', warm: true, seconds: 4, steps: STEPS };
  const words = '(launch 400 ms, process 900 ms, Spark 1.1 s, state 700 ms, first batch 900 ms)';
  const done = { ...at(STEPS, 'running'), last_start };
  expect(told(done)).toBe(`Last restart, with a warm driver: 4 s ${words}`);
  expect(told({ ...stopped, last_start: { ...last_start, cause: 'recovery', warm: false } })).toBe(
    `Last recovery: 4 s ${words}`,
  );
  // The steps of the start before are not those of the next one.
  expect(told({ ...asked, last_start })).toMatch(/^Starting: launch for /);
});

test('a restart begins with the end of the driver before, and a failed job does not start yet', () => {
  const ending = { ...at(STEPS), phase: 'restarting', observed: 'stopping' };
  expect(told(ending)).toMatch(/^Starting: launch for /);
  expect(told({ ...ending, phase: 'recovering', observed: 'failed' })).toBeUndefined();
});

test('of a driver that tells no steps the last start alone is known', () => {
  expect(told(at({}, 'running'))).toBeUndefined();
});
