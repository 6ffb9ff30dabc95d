/** What a test found: the first rows, the columns, what could not be read, and how skewed values are. */
import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Column, Sample } from '../../../api/types';
import { Empty } from '../../../components/Empty';
import { Loading } from '../../../components/Loading';
import { Panel } from '../../../components/Panel';
import { ProblemView } from '../../../components/ProblemView';
import { Rows } from '../../../components/Rows';
import { Stat, Stats } from '../../../components/Stat';
import { formatCount, formatRate } from '../../../format';
import { BadRecords } from '../BadRecords';
import { badOf, countBad } from '../countBad';
import { Skew } from '../Skew';
import { timesIn, widenedIn } from './guesses';
import classes from './TestResult.module.css';
import type { Tested } from './useTest';

const ROWS_PX = 292;
/** More columns of times are a choice that the form's own field is for. */
const SHOWN_TIMES = 3;

interface TestResultProps {
  tested: Tested | null;
  isPending: boolean;
  /** The entry was changed since. */
  isOld: boolean;
  /** Take the columns that were found over; undefined where there are some already. */
  onUse: ((columns: Column[]) => void) | undefined;
  /** Take a column that may be the event time as that; undefined where there is one already. */
  onUseTime: ((time: Sample['times'][number]) => void) | undefined;
}

export function TestResult({ tested, isPending, isOld, onUse, onUseTime }: TestResultProps) {
  const note = isPending ? (
    'is being looked at'
  ) : isOld ? (
    <span className={classes.old}>of the entry before it was changed</span>
  ) : (
    'nothing is registered by it'
  );
  if (tested?.sample == null) {
    return (
      <Panel title="Test" note={note} flush>
        {isPending && <Loading what="rows" lines={6} />}
        {!isPending && tested === null && (
          <Empty title="Not tested yet">
            A test reads a little: the first rows, their columns, and how skewed each column is.
          </Empty>
        )}
        {!isPending && tested !== null && (
          <div className={classes.problem}>
            <ProblemView error={tested.error} />
          </div>
        )}
      </Panel>
    );
  }
  const { sample } = tested;
  return (
    <div className={classes.results} aria-busy={isPending}>
      <Stats>
        <Stat label="Rows looked at" value={formatCount(sample.rows_seen)} note={badOf(sample)} />
        <Stat label="Columns" value={formatCount(sample.columns.length)} />
        <Stat label="Rate" value={formatRate(sample.rate_per_s)} note="of event time" />
      </Stats>
      <FirstRows sample={sample} note={note} onUse={onUse} onUseTime={onUseTime} />
      <BadRecords sample={sample} />
      {sample.rows.length > 0 && <Skew sample={sample} />}
    </div>
  );
}

interface FirstRowsProps extends Pick<TestResultProps, 'onUse' | 'onUseTime'> {
  sample: Sample;
  note: ReactNode;
}

function FirstRows({ sample, note, onUse, onUseTime }: FirstRowsProps) {
  return (
    <Panel
      title="Test"
      note={note}
      actions={
        onUse !== undefined && (
          <Button variant="default" onClick={() => onUse(sample.columns)}>
            Use these columns
          </Button>
        )
      }
      flush
    >
      <p className={classes.words} role="status">
        {wordsFor(sample)}
      </p>
      {sample.widened.map((one) => (
        <p key={one.column} className={classes.words}>
          {widenedIn(one)}
        </p>
      ))}
      {sample.times.length > 0 && <p className={classes.words}>{timesIn(sample)}</p>}
      {onUseTime !== undefined && sample.times.length > 0 && (
        <div className={classes.times}>
          {sample.times.slice(0, SHOWN_TIMES).map((time) => (
            <Button key={time.name} variant="default" onClick={() => onUseTime(time)}>
              Use {time.name} as the event time
            </Button>
          ))}
        </div>
      )}
      <Rows label="Tested rows" columns={sample.columns} rows={sample.rows} height={ROWS_PX} />
    </Panel>
  );
}

function wordsFor(sample: Sample): string {
  if (sample.rows.length > 0)
    return `The first ${formatCount(sample.rows.length)} of ${formatCount(sample.rows_seen)} rows`;
  return countBad(sample) > 0
    ? 'No row can be used; what is wrong with them stands below'
    : 'It can be read, and no row is there yet';
}
