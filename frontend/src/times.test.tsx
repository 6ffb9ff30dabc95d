import { MantineProvider } from '@mantine/core';
import { fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { reportOf } from './api/figures';
import type { Job } from './api/types';
import { readLog } from './pages/job/logs/lines';
import { LogTime } from './pages/job/logs/LogTime';
import { StreamFigures } from './pages/job/StreamFigures';
import { ZoneSwitch } from './shell/ZoneSwitch';
import { chooseZone, timesOf } from './times';

const AT = '2026-01-31T22:00:05.009800Z';
const AT_MS = Date.parse(AT);
const before = process.env.TZ;

beforeEach(() => {
  process.env.TZ = 'Asia/Kolkata';
  vi.resetModules();
  chooseZone('utc');
  chooseZone('local');
});

afterEach(() => {
  process.env.TZ = before;
});

test('a time is written in the zone that was asked for, and in UTC says so', () => {
  const [local, utc] = [timesOf('local'), timesOf('utc')];
  expect([utc.time(AT), utc.timeOfUs(AT_MS * 1000)]).toEqual(['2026-01-31 22:00:05Z', '2026-01-31 22:00:05Z']);
  expect(local.time(AT)).toBe('2026-02-01 03:30:05');
  expect([local.clock(AT_MS / 1000), utc.clock(AT_MS / 1000)]).toEqual(['03:30:05', '22:00:05']);
  expect([local.minute(AT_MS / 1000), utc.minute(AT_MS / 1000)]).toEqual(['03:30', '22:00']);
  expect([local.date(AT_MS / 1000), utc.date(AT_MS / 1000)]).toEqual(['2026-02-01', '2026-01-31']);
  expect([local.clockMs(AT_MS), utc.clockMs(AT_MS)]).toEqual(['03:30:05.009', '22:00:05.009']);
});

test('what is no time is shown as it is', () => {
  expect([timesOf('utc').time(null), timesOf('utc').time('soon'), timesOf('local').timeOfUs(null)]).toEqual([
    '–',
    'soon',
    '–',
  ]);
  expect(timesOf('utc').timeOfUs(1e20)).toBe('100000000000000000000 µs');
});

test('one switch changes marks and logs at once, and is kept', async () => {
  const figures = { tuples: { r: 1 }, marks_us: { r: AT_MS * 1000 } };
  const reports = [reportOf({ at: AT, span_s: 1, generation: 1, figures })];
  const lines = readLog(`{"event": "hello", "level": "info", "timestamp": "${AT}"}`);
  render(
    <MantineProvider env="test">
      <ZoneSwitch />
      <StreamFigures
        job={{ phase: 'running', streams: ['r'] } as unknown as Job}
        reports={reports}
        input={{ kind: 'coming', sinceS: null }}
        span="5 min"
      />
      {lines.map((line) => (
        <LogTime key={line.raw} line={line} />
      ))}
    </MantineProvider>,
  );
  expect(screen.getByText('2026-02-01 03:30:05')).toBeDefined();
  fireEvent.click(screen.getByRole('radio', { name: 'UTC' }));
  expect(screen.getByText('2026-01-31 22:00:05Z')).toBeDefined();
  expect(screen.getByText('22:00:05.009')).toBeDefined();
  expect(localStorage.getItem('streamjoin-zone')).toBe('utc');
  const { useTimes } = await import('./times');
  const Kept = () => <p>kept: {useTimes().zone}</p>;
  render(<Kept />);
  expect(screen.getByText('kept: utc')).toBeDefined();
});
