/** Rates, latency, lag and state over time; and what was left out, where anything was. */
import { useCallback, useMemo, useState, type ReactNode } from 'react';
import { isAdaptive } from '../../api/adaptive';
import type { Report } from '../../api/figures';
import { chartOf, lagChart, leftOutChart, stateChart, unitsChart } from '../../charts/series';
import { ChartTools } from '../../charts/ChartTools';
import { TimeChart } from '../../charts/TimeChart';
import { allOf, within, type Stretch, type View } from '../../charts/view';
import { formatDuration, formatRate, formatShort } from '../../format';
import classes from './JobCharts.module.css';
import type { Input } from './input';
import { leftOutOf } from './leftOut';

interface JobChartsProps {
  reports: Report[];
  input: Input;
  /** How far back they go, to be chosen. */
  range: ReactNode;
}

export function JobCharts({ reports, input, range }: JobChartsProps) {
  const [chosen, choose] = useState<View>({ zoom: null, isLog: false });
  const rates = useMemo(
    () => chartOf(reports, { in: (one) => one.tuplesPerS, out: (one) => one.resultsPerS }),
    [reports],
  );
  const latency = useMemo(
    () => chartOf(reports, { p50: (one) => one.batchMs.p50, p95: (one) => one.batchMs.p95 }),
    [reports],
  );
  const lag = useMemo(() => lagChart(reports), [reports]);
  const state = useMemo(() => stateChart(reports), [reports]);
  const all = useMemo(() => allOf(rates), [rates]);
  // What was chosen gets too old at some time.
  const view = useMemo(() => ({ ...chosen, zoom: chosen.zoom && within(all, chosen.zoom) }), [all, chosen]);
  const onZoom = useCallback((zoom: Stretch | null) => choose(({ isLog }) => ({ isLog, zoom })), []);
  const shared = { view, onZoom };
  const leftOut = useMemo(() => leftOutChart(reports), [reports]);
  const units = useMemo(() => unitsChart(reports), [reports]);
  const { late, shed, unreadable } = leftOutOf(reports);
  const isComing = input.kind === 'coming';
  const replay =
    lag.replayedMs === null
      ? 'event time behind the clock'
      : `drift of a replay from ${formatDuration(lag.replayedMs)} ago`;
  return (
    <>
      <div className={classes.controls}>
        <ChartTools all={all} view={view} onView={choose} />
        {range}
      </div>
      <div className={classes.charts}>
        <TimeChart title="Rates" note="tuples in, results out" data={rates} format={formatRate} {...shared} />
        <TimeChart title="Latency" note="from plan to commit" data={latency} format={formatDuration} {...shared} />
        <TimeChart
          title="Lag"
          note={isComing ? replay : 'of the last tuples that came'}
          data={lag}
          format={formatDuration}
          {...shared}
        />
        <TimeChart
          title="State"
          note={isComing ? 'live tuples' : 'stored tuples; they expire as more come in'}
          data={state}
          format={formatShort}
          {...shared}
        />
        {isAdaptive(reports) && (
          <div className={classes.wide}>
            <TimeChart
              title="Units over time"
              note="those that store, and those that leave once they are empty"
              data={units}
              format={formatShort}
              {...shared}
            />
          </div>
        )}
        {late + shed + unreadable > 0 && (
          <div className={classes.wide}>
            <TimeChart
              title="Left out"
              note="tuples missing from the results"
              data={leftOut}
              format={formatRate}
              {...shared}
            />
          </div>
        )}
      </div>
    </>
  );
}
