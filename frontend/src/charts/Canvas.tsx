/** The canvas of a chart: uPlot, made anew when its looks change, and fed when its data does. */
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatClock, formatMinute } from '../format';
import type { ChartData } from './series';

interface CanvasProps {
  data: ChartData;
  colours: readonly string[];
  scheme: 'light' | 'dark';
  format: (value: number | null) => string;
  width: number;
  height: number;
  onPoint: (place: number | null) => void;
}

const LINES = { light: { grid: '#e8ebf0', text: '#566070' }, dark: { grid: '#272d35', text: '#a3adba' } };
const FONT = '11px system-ui, sans-serif';
const Y_AXIS_PX = 52;
const X_AXIS_PX = 22;

const aligned = ({ atS, series }: ChartData): uPlot.AlignedData => [atS, ...series.map(({ values }) => values)];

export function Canvas({ data, colours, scheme, format, width, height, onPoint }: CanvasProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const drawn = useRef(data);
  const labels = data.series.map(({ label }) => label).join('\n');

  useEffect(() => {
    drawn.current = data;
    plot.current?.setData(aligned(data));
  }, [data]);

  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);

  useEffect(() => {
    if (place.current === null) return undefined;
    const { grid, text } = LINES[scheme];
    const axis: uPlot.Axis = { stroke: text, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        width: place.current.clientWidth,
        height: place.current.clientHeight,
        padding: [6, 24, 0, 0],
        legend: { show: false },
        cursor: { sync: { key: 'streamjoin' }, drag: { x: false, y: false }, points: { size: 5 } },
        scales: { y: { range: (_, least, most) => [Math.min(0, least), most > 0 ? most * 1.08 : 1] } },
        axes: [
          {
            ...axis,
            size: X_AXIS_PX,
            gap: 3,
            space: 54,
            values: (_, splits, _axis, _space, stepS) => splits.map(stepS < 60 ? formatClock : formatMinute),
          },
          { ...axis, size: Y_AXIS_PX, space: 26, values: (_, splits) => splits.map((split) => format(split)) },
        ],
        series: [
          {},
          ...labels.split('\n').map((label, number) => ({
            label,
            stroke: colours[number % colours.length],
            width: 1.5,
            points: { show: false },
          })),
        ],
        hooks: {
          setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)],
          draw: [(chart) => drawRestarts(chart, drawn.current.restartsS, text)],
        },
      },
      aligned(drawn.current),
      place.current,
    );
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [labels, colours, scheme, format, onPoint]);

  return <div ref={place} style={{ position: 'absolute', inset: 0 }} />;
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
