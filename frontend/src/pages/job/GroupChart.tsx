/** Groups that change, as lines: a number of the busiest ones over event time. */
import { NativeSelect } from '@mantine/core';
import { useMemo, useState } from 'react';
import { drawable, groupChart, LINES_MAX } from '../../charts/groupChart';
import { TimeChart } from '../../charts/TimeChart';
import { allOf, within, type Stretch } from '../../charts/view';
import { formatShort } from '../../format';
import type { TailView } from '../../live/tail';

export function GroupChart({ view }: { view: Pick<TailView, 'columns' | 'groups' | 'changes'> }) {
  const { columns, groups, changes } = view;
  const [chosen, choose] = useState<string | null>(null);
  const [zoom, onZoom] = useState<Stretch | null>(null);
  const numbers = useMemo(() => drawable(columns, groups), [columns, groups]);
  const shown = chosen !== null && numbers.includes(chosen) ? chosen : numbers[0];
  const data = useMemo(
    () => (shown === undefined ? null : groupChart(columns, groups, changes, shown)),
    [columns, groups, changes, shown],
  );
  const zoomed = useMemo(() => ({ zoom: data && zoom && within(allOf(data), zoom), isLog: false }), [data, zoom]);
  if (shown === undefined || data === null || data.series.length === 0) return null;
  return (
    <section aria-label="Groups over event time">
      {numbers.length > 1 && (
        <NativeSelect
          size="xs"
          aria-label="Drawn"
          data={numbers}
          value={shown}
          onChange={(event) => choose(event.currentTarget.value)}
        />
      )}
      <TimeChart
        title={shown}
        note={`by event time, of the ${LINES_MAX} groups at most that change most often`}
        data={data}
        format={formatShort}
        view={zoomed}
        onZoom={onZoom}
      />
    </section>
  );
}
