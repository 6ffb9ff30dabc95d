/** Groups that change, as lines: a number of the busiest ones over event time. */
import { NativeSelect } from '@mantine/core';
import { useMemo, useState } from 'react';
import { ChartTools } from '../../charts/ChartTools';
import { drawable, groupChart, LINES_MAX } from '../../charts/groupChart';
import { TimeChart } from '../../charts/TimeChart';
import { useView } from '../../charts/useView';
import { allOf } from '../../charts/view';
import { formatShort } from '../../format';
import type { TailView } from '../../live/tail';
import classes from './GroupChart.module.css';

export function GroupChart({ view }: { view: Pick<TailView, 'columns' | 'groups' | 'changes'> }) {
  const { columns, groups, changes } = view;
  const [chosen, choose] = useState<string | null>(null);
  const numbers = useMemo(() => drawable(columns, groups), [columns, groups]);
  const shown = chosen !== null && numbers.includes(chosen) ? chosen : numbers[0];
  const data = useMemo(
    () => (shown === undefined ? null : groupChart(columns, groups, changes, shown)),
    [columns, groups, changes, shown],
  );
  const all = useMemo(() => data && allOf(data), [data]);
  const { view: part, choose: choosePart, onZoom } = useView(all);
  if (shown === undefined || data === null || data.series.length === 0) return null;
  return (
    <section className={classes.groups} aria-label="Groups over event time">
      {numbers.length > 1 && (
        <NativeSelect
          size="xs"
          className={classes.drawn}
          aria-label="Drawn"
          data={numbers}
          value={shown}
          onChange={(event) => choose(event.currentTarget.value)}
        />
      )}
      <ChartTools all={all} view={part} onView={choosePart} />
      <TimeChart
        title={`${shown} by ${groups.join(', ')}`}
        note={`over event time, of the ${LINES_MAX} groups at most that change most often`}
        data={data}
        format={formatShort}
        view={part}
        holds
        onZoom={onZoom}
      />
    </section>
  );
}
