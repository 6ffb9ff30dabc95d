/** The share of the most frequent value in each column: what a key of a join should not have much of. */
import type { Sample } from '../../api/types';
import { Empty } from '../../components/Empty';
import { Panel } from '../../components/Panel';
import { formatCount, formatShare } from '../../format';
import classes from './Skew.module.css';
import { skewOf } from './skewOf';

export function Skew({ sample }: { sample: Pick<Sample, 'skew'> }) {
  const columns = skewOf(sample);
  return (
    <Panel title="Skew" note="share of the most frequent value" flush>
      {columns.length === 0 && <Empty title="No column to count values of" />}
      <ul className={classes.columns}>
        {columns.map(({ column, distinct, top }) => (
          <li key={column} className={classes.column}>
            <span className={classes.name}>{column}</span>
            <span className={classes.figure}>
              {formatShare(top[0]?.share ?? 0)} · {formatCount(distinct)} distinct
            </span>
            <span className={classes.bar}>
              <span style={{ width: `${String((top[0]?.share ?? 0) * 100)}%` }} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
