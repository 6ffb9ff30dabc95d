/** Records that could not be read, by reason. */
import type { Sample } from '../../api/types';
import { Panel } from '../../components/Panel';
import { formatCount } from '../../format';
import classes from './BadRecords.module.css';
import { countBad } from './countBad';

export function BadRecords({ sample }: { sample: Pick<Sample, 'bad_records'> }) {
  if (countBad(sample) === 0) return null;
  const reasons = Object.entries(sample.bad_records).sort(([, one], [, other]) => other - one);
  return (
    <Panel title="Bad records" note={`${formatCount(countBad(sample))}, which no join sees`} flush>
      <ul className={classes.reasons}>
        {reasons.map(([reason, count]) => (
          <li key={reason} className={classes.reason}>
            <span className={classes.words}>{reason}</span>
            <span className={classes.count}>{formatCount(count)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
