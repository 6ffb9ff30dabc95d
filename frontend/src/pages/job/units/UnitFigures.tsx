/** All figures of the unit that is looked at. */
import type { Report, Unit } from '../../../api/figures';
import { formatCount } from '../../../format';
import { useTimes } from '../../../times';
import { MEASURES, type MeasureName } from './measures';
import classes from './UnitFigures.module.css';

interface UnitFiguresProps {
  id: string;
  unit: Unit;
  report: Report;
  /** It has the most of what units are shown by. */
  isPeak: boolean;
  measure: string;
}

const SHORT: Record<MeasureName, string> = {
  received: 'Received',
  stored: 'Stored',
  bytes: 'Memory',
  comparisons: 'Compared',
  rho: 'ρ',
  results: 'Results',
};

export function UnitFigures({ id, unit, report, isPeak, measure }: UnitFiguresProps) {
  const times = useTimes();
  return (
    <div id={id} className={classes.unit}>
      <h3 className={classes.name}>
        {unit.label}
        {isPeak && <span className={classes.why}>has the most by {measure.toLowerCase()}</span>}
      </h3>
      <dl className={classes.figures}>
        {(Object.keys(SHORT) as MeasureName[]).map((name) => (
          <div key={name}>
            <dt>{SHORT[name]}</dt>
            <dd>{MEASURES[name].format(MEASURES[name].of(unit, report.seconds))}</dd>
          </div>
        ))}
        <div>
          <dt>Late</dt>
          <dd>{formatCount(unit.late)}</dd>
        </div>
        <div>
          <dt>Segments</dt>
          <dd>{formatCount(unit.segments)}</dd>
        </div>
        {Object.entries(report.marksUs).map(([stream, markUs]) => (
          <div key={stream} className={classes.mark}>
            <dt>Watermark of {stream}</dt>
            <dd>{times.timeOfUs(markUs)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
