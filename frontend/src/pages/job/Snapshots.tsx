/** The newest snapshots as a strip: a bar for each, as high as it has rows. */
import { useQuery } from '@tanstack/react-query';
import { snapshotsQuery } from '../../api/queries';
import type { Snapshot } from '../../api/types';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { asProblem } from '../../api/problem';
import { formatBytes, formatCount } from '../../format';
import { useTimes } from '../../times';
import classes from './Snapshots.module.css';

export function Snapshots({ id, isLive }: { id: string; isLive: boolean }) {
  const { data, error, isPending } = useQuery(snapshotsQuery(id, isLive));
  const snapshots = [...(data?.data ?? [])].reverse();
  const newest = snapshots[snapshots.length - 1];
  return (
    <Panel
      title="Snapshots"
      note={newest && `newest ${newest.id}, ${formatCount(newest.rows)} rows, ${formatBytes(newest.bytes)}`}
    >
      {isPending && <Loading what="snapshots" lines={1} />}
      {error !== null && <Empty title="No snapshot to show">{asProblem(error).message}</Empty>}
      {data !== undefined && snapshots.length === 0 && <Empty title="No snapshot was committed yet" />}
      {snapshots.length > 0 && <Strip snapshots={snapshots} />}
    </Panel>
  );
}

/** Such as "3 snapshots with 120 rows, the largest with 60". */
export function snapshotWords(count: number, rows: number, most: number): string {
  const all = `${formatCount(count)} ${count === 1 ? 'snapshot' : 'snapshots'} with ${formatCount(rows)} ${rows === 1 ? 'row' : 'rows'}`;
  return count === 1 ? all : `${all}, the largest with ${formatCount(most)}`;
}

function Strip({ snapshots }: { snapshots: Snapshot[] }) {
  const times = useTimes();
  const most = Math.max(...snapshots.map((snapshot) => snapshot.rows), 1);
  const rows = snapshots.reduce((sum, snapshot) => sum + snapshot.rows, 0);
  const partial = snapshots.filter((snapshot) => snapshot.shed > 0).length;
  const approximate = partial > 0 ? `; ${formatCount(partial)} are approximate: tuples were shed` : '';
  const words = `${snapshotWords(snapshots.length, rows, most)}${approximate}`;
  return (
    <>
      <div className={classes.strip} role="img" aria-label={words}>
        {snapshots.map((snapshot) => (
          <span
            key={snapshot.id}
            className={classes.bar}
            data-partial={snapshot.shed > 0}
            style={{ height: `${String(Math.max(4, (snapshot.rows / most) * 100))}%` }}
            title={`${snapshot.id}: ${formatCount(snapshot.rows)} rows, event time ${times.time(snapshot.time_min)} to ${times.time(snapshot.time_max)}`}
          />
        ))}
      </div>
      <p className={classes.words}>{words}</p>
    </>
  );
}
