import { MantineProvider } from '@mantine/core';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type uPlot from 'uplot';
import { beforeEach, expect, test, vi } from 'vitest';
import { reportOf } from '../../api/figures';
import { JobCharts } from './JobCharts';

/** What stands in for the library that draws: jsdom has no canvas. */
const made = vi.hoisted(() => {
  class FakePlot {
    static readonly all: FakePlot[] = [];
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
  const lines = [...(screen.getByText('out').querySelectorAll('line') ?? [])];
  expect(lines.map((line) => line.getAttribute('stroke-dasharray'))).toEqual(['7 5']);
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
      figures: { seconds: 1, tuples_per_second: 0, results_per_second: 0, lag_ms: {}, live_tuples: { r: 7 } },
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
