/** The canvas of a chart: a plot, made anew when its looks change, and fed when its data does. */
import { useEffect, useRef } from 'react';
import type uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Times } from '../times';
import { feed, makePlot, type Pointing } from './plot';
import type { ChartData } from './series';
import type { Ceiling, View } from './view';

interface CanvasProps extends Pointing {
  data: ChartData;
  colours: readonly string[];
  scheme: 'light' | 'dark';
  format: (value: number | null) => string;
  times: Times;
  width: number;
  height: number;
  view: View;
  ceiling: Ceiling;
  holds: boolean;
}

export function Canvas(props: CanvasProps) {
  const { data, colours, scheme, format, times, width, height, view, ceiling, holds, onPoint, onZoom } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const { zoom, isLog } = view;
  const drawn = useRef({ data, zoom, ceiling });
  // A label may have any character in it, such as a line break.
  const labels = JSON.stringify(data.series.map(({ label }) => label));

  useEffect(() => {
    drawn.current = { data, zoom, ceiling };
    if (plot.current !== null) feed(plot.current, drawn.current);
  }, [data, zoom, ceiling]);

  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);

  useEffect(() => {
    if (place.current === null) return undefined;
    const looks = { labels: JSON.parse(labels) as string[], colours, scheme, format, times, isLog, holds };
    const made = makePlot(place.current, looks, { onPoint, onZoom }, () => drawn.current);
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [labels, colours, scheme, format, times, isLog, holds, onPoint, onZoom]);

  return <div ref={place} style={{ position: 'absolute', inset: 0 }} />;
}
