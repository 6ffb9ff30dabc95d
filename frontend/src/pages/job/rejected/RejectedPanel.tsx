/** Rows that are missing from a job's results: how many, why, and each one that is kept. */
import { Button, NativeSelect } from '@mantine/core';
import { asProblem } from '../../../api/problem';
import type { RejectedFilter } from '../../../api/queries';
import { downloadRejected } from '../../../api/rejected';
import type { Job, RejectedCount } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { Empty } from '../../../components/Empty';
import { Loading } from '../../../components/Loading';
import { Panel } from '../../../components/Panel';
import { ProblemView } from '../../../components/ProblemView';
import { formatCount, formatRows } from '../../../format';
import { rejectedRows } from '../../../recipes';
import { isLive } from '../input';
import { Counts } from './Counts';
import { RejectedList } from './RejectedList';
import classes from './RejectedPanel.module.css';
import { useRejected } from './useRejected';

/** A page is refused where its place is gone, as in a job that has begun anew. */
const REFUSED = 422;

export function RejectedPanel({ job }: { job: Job }) {
  const isFollowed = isLive(job);
  const { asked, found, filter, page, hasNext, choose, turnNext, turnBack, toFirst } = useRejected(job.id, isFollowed);
  const counts = found?.counts ?? [];
  const total = counts.reduce((rows, count) => rows + count.rows, 0);
  const kept = counts.filter((count) => isOf(count, filter)).reduce((rows, count) => rows + count.kept, 0);
  return (
    <Panel
      title="Rejected rows"
      note={total > 0 && `${formatRows(total)} over all runs, each counted once`}
      actions={<CopyAs recipe={rejectedRows(job.name, filter)} what="list the rejected rows of this job" />}
      flush
    >
      {asked.error !== null && (
        <ProblemView
          error={asked.error}
          note={found === undefined ? undefined : 'What was read before is still shown below.'}
          onRetry={() => (asProblem(asked.error).status === REFUSED ? toFirst() : void asked.refetch())}
        />
      )}
      {found === undefined ? (
        asked.isPending && <Loading what="rejected rows" />
      ) : counts.length === 0 ? (
        <Empty title="No row is missing">
          Rows that cannot be joined, come late or are dropped under overload would be counted here, with the reason.
        </Empty>
      ) : (
        <>
          <Counts counts={counts} chosen={filter} onChoose={choose} />
          <div className={classes.tools}>
            <Filters counts={counts} filter={filter} onChoose={choose} />
            <span className={classes.words} role="status">
              {`${formatCount(kept)} kept, newest first${page > 1 ? `; page ${formatCount(page)}` : ''}`}
            </span>
            <span className={classes.buttons} role="group" aria-label="Pages of rejected rows">
              <Button variant="default" disabled={page === 1} onClick={turnBack}>
                Previous page
              </Button>
              <Button variant="default" disabled={!hasNext} onClick={turnNext}>
                Next page
              </Button>
            </span>
            <Downloads id={job.id} filter={filter} />
          </div>
          {found.data.length > 0 ? (
            <RejectedList key={page} rows={found.data} />
          ) : (
            <Empty title={page > 1 ? 'There are no more rows' : 'No such row is kept'}>
              Rows that are late, shed, or have a NULL key are counted only; of the others the newest are kept.
            </Empty>
          )}
        </>
      )}
    </Panel>
  );
}

const isOf = (count: RejectedCount, chosen: RejectedFilter): boolean =>
  [undefined, count.stream].includes(chosen.stream) && [undefined, count.reason].includes(chosen.reason);

interface FiltersProps {
  counts: RejectedCount[];
  filter: RejectedFilter;
  onChoose: (filter: RejectedFilter) => void;
}

function Filters({ counts, filter, onChoose }: FiltersProps) {
  return (
    <>
      <NativeSelect
        size="xs"
        aria-label="Stream"
        value={filter.stream ?? ''}
        data={[{ value: '', label: 'All streams' }, ...namesOf(counts, 'stream')]}
        onChange={({ currentTarget: { value } }) => onChoose({ ...filter, stream: value || undefined })}
      />
      <NativeSelect
        size="xs"
        aria-label="Reason"
        value={filter.reason ?? ''}
        data={[{ value: '', label: 'All reasons' }, ...namesOf(counts, 'reason')]}
        onChange={({ currentTarget: { value } }) => onChoose({ ...filter, reason: value || undefined })}
      />
    </>
  );
}

const namesOf = (counts: RejectedCount[], field: 'stream' | 'reason'): string[] => [
  ...new Set(counts.map((count) => count[field])),
];

function Downloads({ id, filter }: { id: string; filter: RejectedFilter }) {
  return (
    <span className={classes.buttons} role="group" aria-label="Download all rows that are kept">
      {(['csv', 'ndjson'] as const).map((format) => (
        <Button key={format} component="a" variant="default" href={downloadRejected(id, filter, format)} download>
          Download {format === 'csv' ? 'CSV' : 'JSON lines'}
        </Button>
      ))}
    </span>
  );
}
