/** Figures over time. Charts of a page share their cursor, which part they show and their scale. */
import { ActionIcon, Tooltip, useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { lazy, Suspense, useMemo, useState } from 'react';
import { dashesOf, SERIES } from '../theme/theme';
import { WidenIcon } from '../components/icons';
import { useTimes } from '../times';
import { described, valueAt, type ChartData } from './series';
import { ceilingOf, type Stretch, type View } from './view';
import classes from './TimeChart.module.css';

const Canvas = lazy(() => import('./Canvas').then((canvas) => ({ default: canvas.Canvas })));

interface TimeChartProps {
  title: string;
  note?: string;
  data: ChartData;
  format: (value: number | null) => string;
  view: View;
  onZoom: (to: Stretch | null) => void;
}

export function TimeChart({ title, note, data, format, view, onZoom }: TimeChartProps) {
  const times = useTimes();
  const scheme = useComputedColorScheme('light');
  const { ref, width, height } = useElementSize();
  const [pointed, setPointed] = useState<number | null>(null);
  const [isWide, setWide] = useState(false);
  const ceiling = useMemo(() => ceilingOf(data, view), [data, view]);
  const colours = SERIES[scheme];
  const place = pointed !== null && pointed < data.atS.length ? pointed : data.atS.length - 1;
  // Without input no batch tells a lag, so a chart may have times and nothing to draw at them.
  const isEmpty = data.atS.length <= 1 || data.series.length === 0;
  const words = data.series.map((one) => described(one, format)).join('; ');
  return (
    <figure className={classes.chart} data-wide={isWide}>
      <figcaption className={classes.head}>
        <span className={classes.title}>{title}</span>
        <span className={classes.note}>{pointed === null ? note : times.clock(data.atS[place] ?? 0)}</span>
        {ceiling.cut !== null && (
          <span className={classes.cut}>
            ▲ up to {format(ceiling.cut.value)} at {times.clock(ceiling.cut.atS)}
          </span>
        )}
        <Tooltip label={isWide ? 'As wide as the others' : 'Full width'}>
          <ActionIcon
            className={classes.widen}
            variant="subtle"
            color="gray"
            size="sm"
            aria-label={`Full width: ${title}`}
            aria-pressed={isWide}
            onClick={() => setWide(!isWide)}
          >
            <WidenIcon />
          </ActionIcon>
        </Tooltip>
        <ul className={classes.legend} aria-hidden="true">
          {data.series.map((series, number) => (
            <li key={series.label}>
              <svg className={classes.key} width={22} height={4}>
                <line
                  x2={22}
                  y1={2}
                  y2={2}
                  stroke={colours[number % colours.length]}
                  strokeWidth={2}
                  strokeDasharray={dashesOf(number).join(' ')}
                />
              </svg>
              {series.label} <b>{format(valueAt(series, place))}</b>
            </li>
          ))}
        </ul>
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
