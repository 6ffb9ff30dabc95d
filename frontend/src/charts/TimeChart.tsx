/** Figures over time. Charts of a page share their cursor, which part they show and their scale. */
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { lazy, Suspense, useMemo, useState } from 'react';
import { SERIES } from '../theme/theme';
import { useTimes } from '../times';
import { Legend } from './Legend';
import { described, type ChartData } from './series';
import { ceilingOf, DAY_S, type Stretch, type View } from './view';
import classes from './TimeChart.module.css';
import { WidenButton } from './WidenButton';

const Canvas = lazy(() => import('./Canvas').then((canvas) => ({ default: canvas.Canvas })));

interface TimeChartProps {
  title: string;
  note?: string;
  data: ChartData;
  format: (value: number | null) => string;
  view: View;
  /** Whether a value holds until the next one. */
  holds?: boolean;
  onZoom: (to: Stretch | null) => void;
}

export function TimeChart({ title, note, data, format, view, holds = false, onZoom }: TimeChartProps) {
  const times = useTimes();
  const scheme = useComputedColorScheme('light');
  const { ref, width, height } = useElementSize();
  const [pointed, setPointed] = useState<number | null>(null);
  const [isWide, setWide] = useState(false);
  const ceiling = useMemo(() => ceilingOf(data, view), [data, view]);
  const colours = SERIES[scheme];
  const place = pointed !== null && pointed < data.atS.length ? pointed : data.atS.length - 1;
  // Without input no batch tells a lag, so a chart may have times and nothing to draw at them.
  const isEmpty = useMemo(() => data.series.every(({ values }) => values.every((value) => value == null)), [data]);
  const spanS = (data.atS.at(-1) ?? 0) - (data.atS[0] ?? 0);
  const timeOf = (atS: number) => (spanS < DAY_S ? times.clock(atS) : times.timeOfUs(atS * 1e6));
  const words = data.series.map((one) => described(one, format)).join('; ');
  return (
    <figure className={classes.chart} data-wide={isWide}>
      <figcaption className={classes.head}>
        <span className={classes.title}>{title}</span>
        <span className={classes.note}>{pointed === null ? note : timeOf(data.atS[place] ?? 0)}</span>
        {ceiling.cut !== null && (
          <span className={classes.cut}>
            ▲ up to {format(ceiling.cut.value)} at {timeOf(ceiling.cut.atS)}
          </span>
        )}
        <WidenButton title={title} isWide={isWide} onWiden={setWide} />
        <Legend series={data.series} colours={colours} place={place} format={format} />
      </figcaption>
      <div ref={ref} className={classes.canvas} role="img" aria-label={`${title}. ${words}`}>
        {width > 0 && !isEmpty && (
          <Suspense>
            <Canvas
              data={data}
              colours={colours}
              scheme={scheme}
              format={format}
              times={times}
              width={width}
              height={height}
              view={view}
              ceiling={ceiling}
              holds={holds}
              onPoint={setPointed}
              onZoom={onZoom}
            />
          </Suspense>
        )}
        {isEmpty && <p className={classes.empty}>nothing reported in this time</p>}
      </div>
    </figure>
  );
}
