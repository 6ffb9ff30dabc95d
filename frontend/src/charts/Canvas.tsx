/** The canvas of a chart: uPlot, made anew when its looks change, and fed when its data does. */
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Times } from '../times';
import { dashesOf } from '../theme/theme';
import type { ChartData } from './series';
import type { Ceiling, Stretch, View } from './view';

interface CanvasProps {
  data: ChartData;
  colours: readonly string[];
  scheme: 'light' | 'dark';
  format: (value: number | null) => string;
  times: Times;
  width: number;
  height: number;
  view: View;
  ceiling: Ceiling;
  onPoint: (place: number | null) => void;
  /** Null: back to all there is. */
  onZoom: (to: Stretch | null) => void;
}

const LINES = { light: { grid: '#e8ebf0', text: '#566070' }, dark: { grid: '#272d35', text: '#a3adba' } };
const FONT = '11px system-ui, sans-serif';
const Y_AXIS_PX = 52;
const X_AXIS_PX = 22;
const CUT_PX = 5;
/** A shorter drag is a click. */
const DRAG_PX_MIN = 4;

const aligned = ({ atS, series }: ChartData): uPlot.AlignedData => [atS, ...series.map(({ values }) => values)];

export function Canvas({ data, colours, scheme, format, times, width, height, view, ceiling, onPoint, onZoom }: CanvasProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const drawn = useRef({ data, zoom: view.zoom, ceiling });
  const labels = data.series.map(({ label }) => label).join('\n');

  useEffect(() => {
    drawn.current = { data, zoom: view.zoom, ceiling };
    if (plot.current !== null) show(plot.current, drawn.current);
  }, [data, view.zoom, ceiling]);

  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);

  useEffect(() => {
    if (place.current === null) return undefined;
    const { grid, text } = LINES[scheme];
    const axis: uPlot.Axis = { stroke: text, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        width: place.current.clientWidth,
        height: place.current.clientHeight,
        // Where round times are.
        tzDate: (atS) => (times.zone === 'utc' ? uPlot.tzDate(new Date(atS * 1000), 'Etc/UTC') : new Date(atS * 1000)),
        padding: [6, 24, 0, 0],
        legend: { show: false },
        cursor: {
          // What is pointed at is pointed at in all charts. What is dragged is for whom they belong to.
          sync: { key: 'streamjoin', filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
          drag: { x: true, y: false, setScale: false },
          bind: { dblclick: () => () => (onZoom(null), null) },
          points: { size: 5 },
        },
        scales: {
          y: {
            // The inverse of the hyperbolic sine has a place for 0, which a logarithm has not.
            distr: view.isLog ? 4 : 1,
            range: (_, least) => [Math.min(0, least), drawn.current.ceiling.value * 1.08],
          },
        },
        axes: [
          {
            ...axis,
            size: X_AXIS_PX,
            gap: 3,
            space: 54,
            values: (_, splits, _axis, _space, stepS) => splits.map(stepS < 60 ? times.clock : times.minute),
          },
          {
            ...axis,
            size: Y_AXIS_PX,
            space: 26,
            // A log scale has lines without a word, and some below its end.
            values: (chart, splits: (number | null)[]) =>
              splits.map((split) => (split === null || split < (chart.scales.y?.min ?? 0) ? '' : format(split))),
          },
        ],
        series: [
          {},
          ...labels.split('\n').map((label, number) => ({
            label,
            stroke: colours[number % colours.length],
            width: 1.5,
            dash: [...dashesOf(number)],
            points: { show: false },
          })),
        ],
        hooks: {
          setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)],
          setSelect: [
            (chart) => {
              const { left, width } = chart.select;
              if (width < DRAG_PX_MIN) return;
              chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              onZoom({ fromS: chart.posToVal(left, 'x'), toS: chart.posToVal(left + width, 'x') });
            },
          ],
          draw: [
            (chart) => {
              drawRestarts(chart, drawn.current.data.restartsS, text);
              if (drawn.current.ceiling.cut !== null) drawCut(chart, drawn.current.ceiling.cut.atS, text);
            },
          ],
        },
      },
      aligned(drawn.current.data),
      place.current,
    );
    show(made, drawn.current);
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [labels, colours, scheme, format, times, view.isLog, onPoint, onZoom]);

  return <div ref={place} style={{ position: 'absolute', inset: 0 }} />;
}

interface Drawn {
  data: ChartData;
  zoom: Stretch | null;
  ceiling: Ceiling;
}

function show(chart: uPlot, { data, zoom }: Drawn): void {
  chart.batch(() => {
    chart.setData(aligned(data), zoom === null);
    if (zoom !== null) chart.setScale('x', { min: zoom.fromS, max: zoom.toS });
  });
}

/** An arrow at the upper edge, where a line goes on above it. */
function drawCut(chart: uPlot, atS: number, colour: string): void {
  const { ctx, bbox } = chart;
  const x = Math.round(chart.valToPos(atS, 'x', true));
  const size = CUT_PX * uPlot.pxRatio;
  ctx.save();
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x - size, bbox.top + size * 1.6);
  ctx.lineTo(x + size, bbox.top + size * 1.6);
  ctx.fill();
  ctx.restore();
}

function drawRestarts(chart: uPlot, restartsS: number[], colour: string): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([4, 4]);
  for (const atS of restartsS) {
    const x = Math.round(chart.valToPos(atS, 'x', true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
