/** A chart in terms of uPlot: its axes, lines and cursor, and what is told of the pointer. */
import uPlot from 'uplot';
import { dashesOf } from '../theme/theme';
import type { Times } from '../times';
import { drawMarks } from './marks';
import { alone, type ChartData, type Series } from './series';
import { DAY_S, type Ceiling, type Stretch } from './view';

/** Where one of them changes, the plot is made anew. */
export interface Looks {
  labels: string[];
  colours: readonly string[];
  scheme: 'light' | 'dark';
  format: (value: number | null) => string;
  times: Times;
  isLog: boolean;
  /** A value holds until the next one; otherwise a line slopes from one to the other. */
  holds: boolean;
}

/** What a plot is fed with. */
export interface Drawn {
  data: ChartData;
  zoom: Stretch | null;
  ceiling: Ceiling;
}

export interface Pointing {
  onPoint: (place: number | null) => void;
  /** Null: back to all there is. */
  onZoom: (to: Stretch | null) => void;
}

const LINES = { light: { grid: '#e8ebf0', text: '#566070' }, dark: { grid: '#272d35', text: '#a3adba' } };
const FONT = '11px system-ui, sans-serif';
const Y_AXIS_PX = 52;
const X_AXIS_PX = 22;
const ROOM_S = 30;
/** A shorter drag is a click. */
const DRAG_PX_MIN = 4;

/** @param drawn what the plot has been fed with last. */
export function makePlot(place: HTMLElement, looks: Looks, { onPoint, onZoom }: Pointing, drawn: () => Drawn): uPlot {
  const { times, scheme, isLog } = looks;
  const options: uPlot.Options = {
    width: place.clientWidth,
    height: place.clientHeight,
    // Where round times are.
    tzDate: (atS) => (times.zone === 'utc' ? uPlot.tzDate(new Date(atS * 1000), 'Etc/UTC') : new Date(atS * 1000)),
    padding: [6, 24, 0, 0],
    legend: { show: false },
    cursor: cursorOf(onZoom),
    scales: {
      // Around a single time there is some room.
      x: {
        range: ({ data: [atS] }, fromS, toS) => (atS.length === 1 ? [fromS - ROOM_S, fromS + ROOM_S] : [fromS, toS]),
      },
      y: {
        // The inverse of the hyperbolic sine has a place for 0, which a logarithm has not.
        distr: isLog ? 4 : 1,
        range: (_, least) => [Math.min(0, least), drawn().ceiling.value * 1.08],
      },
    },
    axes: axesOf(looks),
    series: [{}, ...linesOf(looks)],
    hooks: {
      setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)],
      setSelect: [(chart) => zoomInto(chart, onZoom)],
      draw: [(chart) => drawMarks(chart, drawn().data, drawn().ceiling, LINES[scheme].text)],
    },
  };
  const made = new uPlot(options, aligned(drawn().data), place);
  feed(made, drawn());
  return made;
}

export function feed(chart: uPlot, { data, zoom }: Drawn): void {
  chart.batch(() => {
    chart.setData(aligned(data), zoom === null);
    if (zoom !== null) chart.setScale('x', { min: zoom.fromS, max: zoom.toS });
  });
}

const aligned = ({ atS, series }: ChartData): uPlot.AlignedData => [atS, ...series.map(({ values }) => values)];

const cursorOf = (onZoom: Pointing['onZoom']): uPlot.Cursor => ({
  // What is pointed at is pointed at in all charts. What is dragged is for whom they belong to.
  sync: { key: 'streamjoin', filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
  drag: { x: true, y: false, setScale: false },
  bind: { dblclick: () => () => (onZoom(null), null) },
  points: { size: 5 },
});

function axesOf({ scheme, format, times }: Looks): uPlot.Axis[] {
  const { grid, text } = LINES[scheme];
  const axis: uPlot.Axis = { stroke: text, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  return [
    {
      ...axis,
      size: X_AXIS_PX,
      gap: 3,
      space: (_, _axis, fromS, toS) => (toS - fromS < DAY_S ? 54 : 72),
      values: (_, splits, _axis, _space, stepS) => unlike(timesAlong(splits, stepS, times)),
    },
    {
      ...axis,
      size: Y_AXIS_PX,
      space: 26,
      // A log scale has lines without a word, and some below its end.
      values: (chart, splits: (number | null)[]) =>
        unlike(splits.map((split) => (split === null || split < (chart.scales.y?.min ?? 0) ? '' : format(split)))),
    },
  ];
}

/** Labels of which none repeats the one before it: a finer line keeps no label of its own. */
export const unlike = (labels: string[]): string[] =>
  labels.map((label, place) => (label === labels.slice(0, place).findLast((before) => before !== '') ? '' : label));

/** Whole seconds have their clock, and not what is between them, unless there is nothing else. */
function timesAlong(splits: number[], stepS: number, times: Times): string[] {
  const hasWhole = splits.some(Number.isInteger);
  return splits.map((atS) => (hasWhole && !Number.isInteger(atS) ? '' : written(atS, stepS, times)));
}

/** A time along the axis; where a day begins, its date tells it from the same hour of other days. */
function written(atS: number, stepS: number, { clock, minute, date }: Times): string {
  if (stepS >= DAY_S || date(atS - 1) !== date(atS)) return date(atS);
  return stepS < 60 ? clock(atS) : minute(atS);
}

const linesOf = ({ labels, colours, holds }: Looks): uPlot.Series[] =>
  labels.map((label, number) => ({
    label,
    stroke: colours[number % colours.length],
    width: 1.5,
    dash: [...dashesOf(number)],
    // A hole begins at its own time: until then the value before it holds.
    ...(holds && uPlot.paths.stepped && { paths: uPlot.paths.stepped({ align: 1, alignGaps: 1 }) }),
    points: {
      show: false,
      filter: ({ data }, of) => alone(data[of] as Series['values']),
      size: 5,
      fill: colours[number % colours.length],
    },
  }));

/** Into what was dragged over, which does not stay marked. */
function zoomInto(chart: uPlot, onZoom: Pointing['onZoom']): void {
  const { left, width } = chart.select;
  if (width < DRAG_PX_MIN) return;
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  onZoom({ fromS: chart.posToVal(left, 'x'), toS: chart.posToVal(left + width, 'x') });
}
