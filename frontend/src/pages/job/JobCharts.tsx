/** Rates, latency, lag and state over time; and what was left out, where anything was. */
import { useMemo, type ReactNode } from 'react';
import { isAdaptive } from '../../api/adaptive';
import type { Report } from '../../api/figures';
import { ChartTools } from '../../charts/ChartTools';
import { chartOf, lagChart, leftOutChart, stateChart, unitsChart } from '../../charts/series';
import { TimeChart } from '../../charts/TimeChart';
import { useView } from '../../charts/useView';
import { allOf, type Stretch, type View } from '../../charts/view';
import { formatDuration, formatRate, formatShort } from '../../format';
import type { Input } from './input';
import classes from './JobCharts.module.css';
import { leftOutOf } from './leftOut';

interface JobChartsProps {
  reports: Report[];
  input: Input;
  /** How far back they go, to be chosen. */
  range: ReactNode;
}

export function JobCharts({ reports, input, range }: JobChartsProps) {
  const rates = useMemo(
    () => chartOf(reports, { in: (one) => one.tuplesPerS, out: (one) => one.resultsPerS }),
    [reports],
  );
  const all = useMemo(() => allOf(rates), [rates]);
  const { view, choose, onZoom } = useView(all);
  const shared = { reports, view, onZoom };
  const isComing = input.kind === 'coming';
  const { late, shed, unreadable } = leftOutOf(reports);
  return (
    <>
      <div className={classes.controls}>
        <ChartTools all={all} view={view} onView={choose} />
        {range}
      </div>
      <div className={classes.charts}>
        <TimeChart
          title="Rates"
          note="tuples in, results out"
          data={rates}
          format={formatRate}
          view={view}
          onZoom={onZoom}
        />
        <LatencyChart {...shared} />
        <LagChart {...shared} isComing={isComing} />
        <StateChart {...shared} isComing={isComing} />
        {isAdaptive(reports) && (
          <div className={classes.wide}>
            <UnitsChart {...shared} />
          </div>
        )}
        {late + shed + unreadable > 0 && (
          <div className={classes.wide}>
            <LeftOutChart {...shared} />
          </div>
        )}
      </div>
    </>
  );
}

interface ReportsChartProps {
  reports: Report[];
  view: View;
  onZoom: (to: Stretch | null) => void;
}

interface InputChartProps extends ReportsChartProps {
  isComing: boolean;
}

function LatencyChart({ reports, ...shared }: ReportsChartProps) {
  const data = useMemo(
    () => chartOf(reports, { p50: (one) => one.batchMs.p50, p95: (one) => one.batchMs.p95 }),
    [reports],
  );
  return <TimeChart title="Latency" note="from plan to commit" data={data} format={formatDuration} {...shared} />;
}

function LagChart({ reports, isComing, ...shared }: InputChartProps) {
  const data = useMemo(() => lagChart(reports), [reports]);
  const replay =
    data.replayedMs === null
      ? 'event time behind the clock'
      : `drift of a replay from ${formatDuration(data.replayedMs)} ago`;
  const note = isComing ? replay : 'of the last tuples that came';
  return <TimeChart title="Lag" note={note} data={data} format={formatDuration} {...shared} />;
}

function StateChart({ reports, isComing, ...shared }: InputChartProps) {
  const data = useMemo(() => stateChart(reports), [reports]);
  const note = isComing ? 'live tuples' : 'stored tuples; they expire as more come in';
  return <TimeChart title="State" note={note} data={data} format={formatShort} {...shared} />;
}

function UnitsChart({ reports, ...shared }: ReportsChartProps) {
  const data = useMemo(() => unitsChart(reports), [reports]);
  const note = 'those that store, and those that leave once they are empty';
  return <TimeChart title="Units over time" note={note} data={data} format={formatShort} {...shared} />;
}

function LeftOutChart({ reports, ...shared }: ReportsChartProps) {
  const data = useMemo(() => leftOutChart(reports), [reports]);
  return <TimeChart title="Left out" note="tuples missing from the results" data={data} format={formatRate} {...shared} />;
}
