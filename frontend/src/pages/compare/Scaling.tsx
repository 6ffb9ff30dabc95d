/** How the predictions change with the number of slots: a line for each operator, and the figures below. */
import { SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import { Empty } from '../../components/Empty';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { MEASURES, type MeasureKey } from './comparison';
import { FiguresBySlots } from './FiguresBySlots';
import { formatMeasure, formatTick, isBytes } from './formatMeasure';
import { LineChart } from './LineChart';
import { linesOf, SLOTS } from './scaling';
import type { Setting } from './setting';
import { useScaling } from './useScaling';

interface ScalingProps {
  query: string;
  setting: Setting;
  /** Whether the operators themselves have been asked about: they come first. */
  isSettled: boolean;
}

export function Scaling({ query, setting, isSettled }: ScalingProps) {
  const [chosen, choose] = useState<MeasureKey>('replication');
  const scaling = useScaling(query, setting, isSettled);
  const steps = scaling.data?.steps ?? [];
  const slots = steps.map((step) => step.slots);
  const lines = linesOf(steps, chosen);
  const format = (value: number | null) => formatMeasure(chosen, value);
  const isWhole = !scaling.isFetching && !scaling.isPlaceholderData;
  const done = scaling.isPlaceholderData ? 0 : steps.length;
  return (
    <Panel
      title="With more slots"
      note={
        <span role="status">
          {isWhole
            ? 'units follow the slots; other knobs stay'
            : `asked for ${String(done)} of ${String(SLOTS.length)} numbers of slots`}
        </span>
      }
      actions={
        <SegmentedControl
          size="xs"
          aria-label="What is drawn"
          value={chosen}
          onChange={choose}
          data={MEASURES.map(({ key, label }) => ({ value: key, label }))}
        />
      }
      flush
    >
      {scaling.error !== null && <ProblemView error={scaling.error} onRetry={() => void scaling.refetch()} />}
      {scaling.data?.mistakes !== undefined && (
        <Empty title="Nothing can be drawn">{scaling.data.mistakes[0]?.detail}</Empty>
      )}
      {isWhole && steps.length > 0 && lines.length === 0 && (
        <Empty title="No formula tells this">The rates of the streams are not known before they flow.</Empty>
      )}
      {lines.length > 0 && (
        <>
          <LineChart
            x={SLOTS}
            lines={lines}
            isBytes={isBytes(chosen)}
            format={format}
            formatTick={(tick) => formatTick(chosen, tick)}
          />
          <FiguresBySlots slots={slots} lines={lines} format={format} />
        </>
      )}
    </Panel>
  );
}
