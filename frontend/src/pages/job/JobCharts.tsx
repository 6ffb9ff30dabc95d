/** Rates, latency, lag and state over time; and what was left out, where anything was. */
import { useMemo } from 'react';
import type { Report } from '../../api/figures';
import { chartOf, lagChart, leftOutChart, stateChart } from '../../charts/series';
import { TimeChart } from '../../charts/TimeChart';
import { formatDuration, formatRate, formatShort } from '../../format';
import classes from './JobCharts.module.css';
import { leftOutOf } from './leftOut';

export function JobCharts({ reports }: { reports: Report[] }) {
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
  const leftOut = useMemo(() => leftOutChart(reports), [reports]);
  const { late, shed, unreadable } = leftOutOf(reports);
  const replay =
    lag.replayedMs === null
      ? 'event time behind the clock'
      : `drift of a replay from ${formatDuration(lag.replayedMs)} ago`;
  return (
    <div className={classes.charts}>
      <TimeChart title="Rates" note="tuples in, results out" data={rates} format={formatRate} />
      <TimeChart title="Latency" note="from plan to commit" data={latency} format={formatDuration} />
      <TimeChart title="Lag" note={replay} data={lag} format={formatDuration} />
      <TimeChart title="State" note="live tuples" data={state} format={formatShort} />
      {late + shed + unreadable > 0 && (
        <div className={classes.wide}>
          <TimeChart title="Left out" note="tuples missing from the results" data={leftOut} format={formatRate} />
        </div>
      )}
    </div>
  );
}
