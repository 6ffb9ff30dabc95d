/** Results as they are committed: every snapshot once, with a pause, a condition, and a word on what was left out. */
import { Anchor, Button, TextInput } from '@mantine/core';
import { useMemo, useState, type FormEvent } from 'react';
import { Link } from 'react-router';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { PauseIcon, PlayIcon } from '../../components/icons';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { Rows } from '../../components/Rows';
import { Problem } from '../../api/problem';
import { formatCount } from '../../format';
import type { TailView } from '../../live/tail';
import { useTail } from '../../live/useTail';
import { tailJob } from '../../recipes';
import { Approximate } from './Approximate';
import { GroupChart } from './GroupChart';
import { OfQuery } from './OfQuery';
import { OWN, resultsOf } from './furtherQueries';
import type { Input } from './input';
import classes from './TailPanel.module.css';

const ROWS_PX = 440;

interface TailPanelProps {
  job: Job;
  input: Input;
  /** What is held back though the input is over, such as "36 groups wait for later rows"; null for nothing. */
  held: string | null;
  isApproximate: boolean;
}

export function TailPanel({ job, input, held, isApproximate }: TailPanelProps) {
  const [where, setWhere] = useState<string | null>(null);
  const [of, setOf] = useState(OWN);
  const { tail, view } = useTail(resultsOf(job.id, of), where);
  const rows = useMemo(() => view.rows.map((row) => row.cells), [view.rows]);
  return (
    <Panel
      title="Results"
      note={
        <>
          <Came view={view} isOver={input.kind === 'finished' || job.phase !== 'running'} /> {isApproximate && <Approximate />}
        </>
      }
      actions={
        <>
          <OfQuery job={job} of={of} onChange={setOf} />
          <Condition onAsk={setWhere} />
          <Button
            variant="default"
            leftSection={view.isPaused ? <PlayIcon /> : <PauseIcon />}
            onClick={() => tail.pause(!view.isPaused)}
          >
            {view.isPaused ? `Go on${view.waiting > 0 ? `, ${formatCount(view.waiting)} wait` : ''}` : 'Pause'}
          </Button>
          <Button variant="default" onClick={() => tail.clear()}>
            Clear
          </Button>
          <CopyAs recipe={tailJob(resultsOf(job.name, of), where)} what="follow these results" />
        </>
      }
      flush
    >
      {view.problem !== null && <ProblemView error={new Problem(view.problem)} />}
      {view.groups.length > 0 && <GroupChart view={view} />}
      {rows.length > 0 ? (
        <Rows label={view.groups.length > 0 ? 'Groups' : 'Newest results'} columns={view.columns} rows={rows} height={ROWS_PX} />
      ) : (
        view.problem === null && <Waiting job={job} input={input} held={held} view={view} />
      )}
    </Panel>
  );
}

type Counted = Pick<TailView, 'groups' | 'rows' | 'received'>;

/** @param isOver no more results come, so all there are came earlier. */
export function cameWords({ groups, rows, received }: Counted, isOver: boolean): string {
  if (isOver && received === 0 && rows.length === 0) return 'none since you opened this page';
  if (groups.length > 0) return `${formatCount(rows.length)} groups, ${formatCount(received)} changes came`;
  return `${formatCount(received)} rows came, newest first`;
}

function Came({ view, isOver }: { view: TailView; isOver: boolean }) {
  return (
    <span>
      {cameWords(view, isOver)}
      {view.dropped.snapshots > 0 && (
        <strong className={classes.dropped}>
          {formatCount(view.dropped.rows)} dropped: this page was too slow for {formatCount(view.dropped.snapshots)}{' '}
          snapshots
        </strong>
      )}
      {view.cut > 0 && view.groups.length === 0 && (
        <strong className={classes.dropped}>
          {formatCount(view.cut)} snapshots have more rows than come here; Ask gives them all
        </strong>
      )}
      {view.gap === 'restarted' && <strong className={classes.dropped}>the job began anew</strong>}
      {view.gap === 'resync' && <strong className={classes.dropped}>some results in between are no longer kept</strong>}
    </span>
  );
}

interface WaitingProps extends Pick<TailPanelProps, 'job' | 'input' | 'held'> {
  view: Pick<TailView, 'end'>;
}

const ToAsk = ({ children }: { children: string }) => (
  <Anchor component={Link} to="?tab=ask" fz="inherit" underline="always">
    {children}
  </Anchor>
);

export function Waiting({ job, input, held, view }: WaitingProps) {
  if (view.end === 'deleted') return <Empty title="The job was deleted" />;
  if (input.kind === 'finished' && held !== null)
    return (
      <Empty title="Some results are held back">
        All input was joined, and {held}. With <em>Until the end</em>, under Change, the job gives them when its input ends.{' '}
        <ToAsk>Ask shows the results that are kept</ToAsk>.
      </Empty>
    );
  if (input.kind === 'finished')
    return (
      <Empty title="No more results come">
        All input was joined. <ToAsk>Ask shows the results that are kept</ToAsk>.
      </Empty>
    );
  if (job.phase === 'running')
    return <Empty title="Waiting for the next results">They appear here as soon as a snapshot is committed.</Empty>;
  if (job.wanted === 'running')
    return <Empty title={`The job is ${job.phase}`}>Starting Spark takes some seconds.</Empty>;
  return (
    <Empty title="The job does not run">
      Start it to follow its results, or <ToAsk>ask those that are kept</ToAsk>.
    </Empty>
  );
}

/** The condition that results must meet: it is asked when it is complete, and not while it is typed. */
function Condition({ onAsk }: { onAsk: (where: string | null) => void }) {
  const [text, setText] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onAsk(text.trim() === '' ? null : text.trim());
  };
  return (
    <form onSubmit={submit} className={classes.condition}>
      <TextInput
        size="xs"
        aria-label="Only results where"
        placeholder="where, such as price > 100"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button variant="default" type="submit">
        Filter
      </Button>
    </form>
  );
}
