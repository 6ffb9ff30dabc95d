/** What a saved query gives now. */
import { Button } from '@mantine/core';
import { Problem } from '../../api/problem';
import type { Answer, QueryIn, SavedQuery } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { Rows } from '../../components/Rows';
import { formatCount } from '../../format';
import { askJob } from '../../recipes';
import classes from './AskedAgain.module.css';
import { ROWS_MAX } from './firstRows';
import { SaveQuery } from './SaveQuery';
import { questionOf } from './words';

const ROWS_PX = 440;

interface AskedAgainProps {
  kept: SavedQuery;
  answer: Answer | undefined;
  error: Error | null;
  isAsking: boolean;
  onAsk: (kept: SavedQuery) => void;
}

export function AskedAgain({ kept, answer, error, isAsking, onAsk }: AskedAgainProps) {
  const question = questionOf(kept);
  return (
    <div className={classes.below}>
      <Panel
        title={`Answer: ${kept.name}`}
        note={
          <span role="status">
            {answer === undefined ? (isAsking ? 'is being asked' : 'no answer') : came(answer, question)}
          </span>
        }
        actions={
          <>
            <Button variant="default" loading={isAsking} onClick={() => onAsk(kept)}>
              Ask again
            </Button>
            <SaveQuery question={question} label="Save a copy…" />
            <CopyAs recipe={askJob(question)} what={`ask ${kept.name}`} />
          </>
        }
        flush
      >
        {error !== null && <ProblemView error={error} onRetry={() => onAsk(kept)} />}
        {answer?.error && <ProblemView error={new Problem(answer.error)} />}
        {answer === undefined ? (
          isAsking && <Loading what="the answer" lines={5} />
        ) : answer.rows.length === 0 ? (
          <Empty title="No result is like that" />
        ) : (
          <Rows label="Answer" columns={answer.schema} rows={answer.rows} height={ROWS_PX} />
        )}
      </Panel>
    </div>
  );
}

function came(answer: Answer, { limit }: QueryIn): string {
  const rows = `${formatCount(answer.rows_given)} rows`;
  const upto = `up to snapshot ${answer.last_snapshot}`;
  if (!answer.truncated) return `${rows}, ${upto}`;
  if (answer.stopped_by !== 'limit') return `${rows}, cut off by ${answer.stopped_by ?? 'a limit'}, ${upto}`;
  return limit != null && limit <= ROWS_MAX
    ? `${rows}, its limit, ${upto}`
    : `the first ${rows}: an export has all, ${upto}`;
}
