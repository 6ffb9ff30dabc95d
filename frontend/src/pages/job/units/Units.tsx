/** The join units, each as full as it has of what was chosen: uneven load shows at a glance. */
import { NativeSelect } from '@mantine/core';
import { useId, useState } from 'react';
import type { Report } from '../../../api/figures';
import { Empty } from '../../../components/Empty';
import { Panel } from '../../../components/Panel';
import { Forwarding } from './Forwarding';
import { measured, MEASURES, type MeasureName } from './measures';
import { UnitCells } from './UnitCells';
import { UnitFigures } from './UnitFigures';
import { unitGrid } from './unitGrid';
import classes from './Units.module.css';

/** With more of them there is no room for their names. */
const NAMED_MAX = 48;

const isMeasure = (name: string): name is MeasureName => name in MEASURES;

export function Units({ report }: { report: Report | undefined }) {
  const [chosen, choose] = useState<MeasureName>('received');
  /** The unit that is looked at; null for the one with the most. */
  const [place, setPlace] = useState<number | null>(null);
  const figures = useId();
  const measure = MEASURES[chosen];
  // As they are drawn: a unit that came later has a number behind those of the other side.
  const units = unitGrid(report?.units ?? []).flatMap((row) => row.units);
  const found = measured({ units, seconds: report?.seconds ?? 0 }, measure);
  const shown = place !== null && place < units.length ? place : Math.max(found.peak, 0);
  const unit = units[shown];
  return (
    <Panel
      title="Units"
      note={found.skew !== null && `the largest has ${found.skew.toFixed(2)} times the mean`}
      actions={
        <NativeSelect
          size="xs"
          aria-label="What units are shown by"
          value={chosen}
          onChange={({ currentTarget }) => isMeasure(currentTarget.value) && choose(currentTarget.value)}
          data={Object.entries(MEASURES).map(([value, { label }]) => ({ value, label }))}
        />
      }
    >
      {report === undefined || unit === undefined ? (
        <Empty title="No unit has reported yet" />
      ) : (
        <>
          <UnitCells
            units={units}
            isDense={units.length > NAMED_MAX}
            measured={found}
            format={measure.format}
            place={shown}
            describedBy={figures}
            onLook={setPlace}
          />
          {units.length > NAMED_MAX && (
            <p className={classes.scale} aria-hidden="true">
              {measure.format(0)} <span className={classes.ramp} /> {measure.format(found.most)}
            </p>
          )}
          <UnitFigures id={figures} unit={unit} report={report} isPeak={shown === found.peak} measure={measure.label} />
          <Forwarding report={report} />
        </>
      )}
    </Panel>
  );
}
