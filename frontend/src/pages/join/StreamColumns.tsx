/** What can be joined: the streams, with the columns of those that the query names. */
import { Anchor } from '@mantine/core';
import { Link } from 'react-router';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import classes from './StreamColumns.module.css';

interface StreamColumnsProps {
  names: string[];
  columns: Record<string, string[]>;
  isPending: boolean;
}

export function StreamColumns({ names, columns, isPending }: StreamColumnsProps) {
  return (
    <Panel title="Streams" note="columns of those that the query names" flush>
      {isPending && <Loading what="streams" />}
      {!isPending && names.length === 0 && (
        <Empty title="No stream yet">A demo on the overview brings some, and so does streamjoin streams create.</Empty>
      )}
      <ul className={classes.streams}>
        {names.map((name) => (
          <li key={name}>
            <Anchor component={Link} to={`/streams/${encodeURIComponent(name)}`} fz="sm" fw={600}>
              {name}
            </Anchor>
            {(columns[name] ?? []).length > 0 && <p className={classes.columns}>{columns[name]?.join(', ')}</p>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
