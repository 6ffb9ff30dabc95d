import { MantineProvider } from '@mantine/core';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type uPlot from 'uplot';
import { beforeEach, expect, test, vi } from 'vitest';
import { reportOf } from '../../api/figures';
import { ZoneSwitch } from '../../shell/ZoneSwitch';
import { chooseZone } from '../../times';
import { JobCharts } from './JobCharts';

/** What stands in for the library that draws: jsdom has no canvas. */
const made = vi.hoisted(() => {
  class FakePlot {
    static readonly all: FakePlot[] = [];
    /** A date whose local parts are those of the zone. */
    static tzDate = (date: Date, timeZone: string) => new Date(date.toLocaleString('en-US', { timeZone }));
    readonly options: uPlot.Options;
    shown: unknown = null;
    select = { left: 0, top: 0, width: 0, height: 0 };
    constructor(options: uPlot.Options) {
      this.options = options;
      FakePlot.all.push(this);
    }
    batch = (act: () => void) => act();
    setData = (data: unknown[], all: boolean) => {
      if (data.length !== this.options.series.length) throw new Error('there are other series than these');
      if (all) this.shown = null;
    };
    setScale = (_: string, stretch: unknown) => {
      this.shown = stretch;
    };
    setSelect = vi.fn();
    setSize = () => undefined;
    destroy = () => FakePlot.all.splice(FakePlot.all.indexOf(this), 1);
    posToVal = (px: number) => T0_S + px;
  }
  const T0_S = 1_767_225_600;
  return { FakePlot, T0_S };
});
vi.mock('uplot', () => ({ default: made.FakePlot }));
vi.mock('@mantine/hooks', async (original) => ({
  ...(await original<typeof import('@mantine/hooks')>()),
  useElementSize: () => ({ ref: () => undefined, width: 400, height: 150 }),
}));

const { FakePlot, T0_S } = made;
const reports = Array.from({ length: 100 }, (_, s) =>
  reportOf({
    at: new Date((T0_S + s) * 1000).toISOString(),
    span_s: 1,
    generation: s < 3 ? 1 : 2,
    figures: {
      seconds: 1,
      tuples_per_second: s === 3 ? 62_100 : 900,
      results_per_second: 9,
      batch_ms: { p50: 300, p95: 400 },
      lag_ms: { r: 5 },
      live_tuples: { r: 7 },
    },
  }),
);

beforeEach(async () => {
  render(
    <MantineProvider env="test">
      <JobCharts reports={reports} input={{ kind: 'coming', sinceS: null }} range={null} />
    </MantineProvider>,
  );
  await waitFor(() => expect(FakePlot.all).toHaveLength(4));
});

const shown = () => FakePlot.all.map((plot) => plot.shown);
const press = (name: string) => act(() => void fireEvent.click(screen.getByRole('button', { name })));
/** From pixel to pixel of the first chart; a pixel is a second. */
const drag = (left: number, width: number) =>
  act(() => {
    const plot = FakePlot.all[0];
    if (plot === undefined) throw new Error('there is no chart');
    plot.select = { left, top: 0, width, height: 150 };
    for (const hook of plot.options.hooks?.setSelect ?? []) hook?.(plot as unknown as uPlot);
  });

test('dragging over one chart shows that part in all of them, and a double click all again', () => {
  drag(20, 30);
  expect(shown()).toEqual(Array(4).fill({ min: T0_S + 20, max: T0_S + 50 }));
  drag(70, 2);
  expect(shown()[0]).toEqual({ min: T0_S + 20, max: T0_S + 50 });
  const plot = FakePlot.all[1] as unknown as uPlot;
  const handler = FakePlot.all[1]?.options.cursor?.bind?.dblclick?.(plot, document.body, () => null);
  act(() => void handler?.(new MouseEvent('dblclick')));
  expect(shown()).toEqual([null, null, null, null]);
});

test('buttons do the same for who does not drag', () => {
  press('Zoom in');
  expect(shown()[2]).toEqual({ min: T0_S + 24.75, max: T0_S + 74.25 });
  press('Earlier');
  expect(shown()[2]).toEqual({ min: T0_S, max: T0_S + 49.5 });
  press('Later');
  press('Zoom out');
  expect(shown()[2]).toBeNull();
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Show all' }).disabled).toBe(true);
});

test('a spike at a restart is cut off with its true value, and has its room on a log scale', () => {
  expect(screen.getByText(/^▲ up to 62\.1K\/s at \d\d:\d\d:\d\d$/)).toBeDefined();
  const range = () => {
    const { range } = FakePlot.all[0]?.options.scales?.y ?? {};
    return typeof range === 'function' ? range(FakePlot.all[0] as unknown as uPlot, 9, 62_100, 'y') : null;
  };
  expect(range()).toEqual([0, 900 * 1.5 * 1.08]);
  press('Log scale');
  expect(FakePlot.all.map(({ options }) => options.scales?.y?.distr)).toEqual([4, 4, 4, 4]);
  expect(range()).toEqual([0, 62_100 * 1.08]);
  expect(screen.queryByText(/^▲/)).toBeNull();
});

test('two series differ by colour and by dash, in the chart and in its legend', () => {
  const [, first, second] = FakePlot.all[0]?.options.series ?? [];
  expect(first?.stroke).not.toBe(second?.stroke);
  expect([first?.dash, second?.dash]).toEqual([[], [7, 5]]);
  const lines = [...(screen.getByText('out').closest('li')?.querySelectorAll('line') ?? [])];
  expect(lines.map((line) => line.getAttribute('stroke-dasharray'))).toEqual(['7 5']);
});

test('axes, what is pointed at and what is cut off are in the zone that is chosen', () => {
  const before = process.env.TZ;
  process.env.TZ = 'Asia/Kolkata';
  // Times are written by the machine's zone at the time of the choice.
  act(() => chooseZone('utc'));
  act(() => chooseZone('local'));
  render(
    <MantineProvider env="test">
      <ZoneSwitch />
    </MantineProvider>,
  );
  const drawn = () =>
    FakePlot.all.map(({ options }) => {
      const { values } = options.axes?.[0] ?? {};
      const words = (stepS: number) =>
        typeof values === 'function' ? values(FakePlot.all[0] as unknown as uPlot, [T0_S + 5], 0, 0, stepS) : null;
      const { tzDate } = options;
      return [words(10), words(300), tzDate?.(T0_S).getHours(), tzDate?.(T0_S).getMinutes()];
    });
  const point = () =>
    act(() => {
      for (const hook of FakePlot.all[0]?.options.hooks?.setCursor ?? [])
        hook?.({ cursor: { idx: 7 } } as unknown as uPlot);
    });
  try {
    point();
    expect(drawn()).toEqual(Array(4).fill([['05:30:05'], ['05:30'], 5, 30]));
    expect(screen.getByText('05:30:07')).toBeDefined();
    expect(screen.getByText('▲ up to 62.1K/s at 05:30:03')).toBeDefined();
    fireEvent.click(screen.getByRole('radio', { name: 'UTC' }));
    expect(drawn()).toEqual(Array(4).fill([['00:00:05'], ['00:00'], 0, 0]));
    // What is pointed at is written anew, without another move of the pointer.
    expect(screen.getByText('00:00:07')).toBeDefined();
    expect(screen.getByText('▲ up to 62.1K/s at 00:00:03')).toBeDefined();
    expect(screen.queryByText(/05:30/)).toBeNull();
  } finally {
    process.env.TZ = before;
    act(() => chooseZone('local'));
  }
});

test('one chart is as wide as the page on demand', () => {
  const button = screen.getByRole('button', { name: 'Full width: Rates' });
  const chart = button.closest('figure');
  expect(chart?.getAttribute('data-wide')).toBe('false');
  fireEvent.click(button);
  expect(chart?.getAttribute('data-wide')).toBe('true');
  expect(button.getAttribute('aria-pressed')).toBe('true');
});

test('a job without input tells no lag, and the other charts are drawn', async () => {
  cleanup();
  const quiet = Array.from({ length: 50 }, (_, s) =>
    reportOf({
      at: new Date((T0_S + s) * 1000).toISOString(),
      span_s: 1,
      generation: 1,
      figures: {
        seconds: 1,
        tuples_per_second: 0,
        results_per_second: 0,
        batch_ms: s === 0 ? { p50: 300, p95: 400 } : {},
        lag_ms: {},
        live_tuples: { r: 7 },
      },
    }),
  );
  render(
    <MantineProvider env="test">
      <JobCharts reports={quiet} input={{ kind: 'finished', sinceS: null }} range={null} />
    </MantineProvider>,
  );
  await waitFor(() => expect(FakePlot.all).toHaveLength(3));
  expect(screen.getByText('nothing reported in this time')).toBeDefined();
});
