/** Figures over time. Charts of a page share their cursor; what it points at stands in the legend. */
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { lazy, Suspense, useState } from 'react';
import { formatClock } from '../format';
import { SERIES } from '../theme/theme';
import { described, valueAt, type ChartData } from './series';
import classes from './TimeChart.module.css';

const Canvas = lazy(() => import('./Canvas').then((canvas) => ({ default: canvas.Canvas })));

interface TimeChartProps {
  title: string;
  note?: string;
  data: ChartData;
  format: (value: number | null) => string;
}

export function TimeChart({ title, note, data, format }: TimeChartProps) {
  const scheme = useComputedColorScheme('light');
  const { ref, width, height } = useElementSize();
  const [pointed, setPointed] = useState<number | null>(null);
  const colours = SERIES[scheme];
  const place = pointed !== null && pointed < data.atS.length ? pointed : data.atS.length - 1;
  const words = data.series.map((one) => described(one, format)).join('; ');
  return (
    <figure className={classes.chart}>
      <figcaption className={classes.head}>
        <span className={classes.title}>{title}</span>
        <span className={classes.note}>{pointed === null ? note : formatClock(data.atS[place] ?? 0)}</span>
        <ul className={classes.legend} aria-hidden="true">
          {data.series.map((series, number) => (
            <li key={series.label}>
              <span className={classes.key} style={{ background: colours[number % colours.length] }} />
              {series.label} <b>{format(valueAt(series, place))}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={ref} className={classes.canvas} role="img" aria-label={`${title}. ${words}`}>
        {width > 0 && data.atS.length > 1 && (
          <Suspense>
            <Canvas
              data={data}
              colours={colours}
              scheme={scheme}
              format={format}
              width={width}
              height={height}
              onPoint={setPointed}
            />
          </Suspense>
        )}
        {data.atS.length <= 1 && <p className={classes.empty}>nothing reported in this time</p>}
      </div>
    </figure>
  );
}
