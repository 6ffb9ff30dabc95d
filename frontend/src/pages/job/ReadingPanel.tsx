/** How fast a relation is joined, how much is read for it and how much memory it takes, each beside its prediction. */
import type { Report } from '../../api/figures';
import type { Reading } from '../../api/reading';
import { Panel } from '../../components/Panel';
import { Stat, Stats } from '../../components/Stat';
import { formatBytes, formatRate, formatRatio, formatShare } from '../../format';
import classes from './JobStats.module.css';

/** What units do with values that wait: such as "2 count, 1 switches". */
export function phaseWords(phases: NonNullable<Reading['phases']>): string {
  const { counting, switching, phasingOut } = phases;
  const words = [
    [counting, 'counting'],
    [switching, 'switching'],
    [phasingOut, 'phase-out'],
  ] as const;
  const there = words.filter(([units]) => units > 0);
  if (there.length === 1) return there[0]?.[1] ?? '';
  return there.map(([units, name]) => `${String(units)} ${name}`).join(', ');
}

export function ReadingPanel({ report }: { report: Report | undefined }) {
  const reading = report?.reading;
  if (reading === null || reading === undefined) return null;
  const { predicted } = reading;
  const said = (value: number | null | undefined, format: (value: number) => string): string =>
    value === null || value === undefined ? 'nothing was predicted' : `predicted ${format(value)}`;
  return (
    <Panel title="Relation" note="of the units alone, in the last report">
      <Stats>
        <Stat
          label="Joined in a second of work"
          value={formatRate(reading.ratePerS)}
          note={`${said(predicted?.ratePerS, formatRate)}${reading.rowsPerTuple === null ? '' : ', with full memory'}`}
        />
        {reading.rowsPerTuple !== null && (
          <Stat
            label="Rows read for a tuple"
            value={formatRatio(reading.rowsPerTuple)}
            note={said(predicted?.rowsPerTuple, formatRatio)}
          />
        )}
        {reading.cachedShare !== null && (
          <Stat
            label="From the cache"
            value={formatShare(reading.cachedShare)}
            note={said(predicted?.cachedShare, formatShare)}
          />
        )}
        {reading.phases !== null && <Stat label="Round" value={phaseWords(reading.phases)} note="of the units" />}
        {reading.memoryBytes !== null && (
          <Stat
            label="Memory"
            value={formatBytes(reading.memoryBytes)}
            note={
              reading.allowedBytes === null
                ? said(predicted?.memoryBytes, formatBytes)
                : `of ${formatBytes(reading.allowedBytes)}`
            }
          />
        )}
      </Stats>
      {typeof predicted?.problem === 'string' && <p className={classes.warning}>{predicted.problem}</p>}
    </Panel>
  );
}
