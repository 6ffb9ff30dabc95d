/** Whether the platform answers, and how live views are connected. */
import { useQuery } from '@tanstack/react-query';
import { asProblem } from '../api/problem';
import { configQuery, jobsQuery } from '../api/queries';
import { useSocketState } from '../live/shared';
import type { SocketState } from '../live/socket';
import classes from './Connection.module.css';

const LIVE: Record<SocketState, string> = {
  idle: 'connected',
  connecting: 'connecting',
  open: 'connected, live',
  waiting: 'reconnecting',
  'signed-out': 'signed out',
};

export function Connection() {
  const socket = useSocketState();
  const config = useQuery(configQuery);
  const { error } = useQuery({ ...jobsQuery, select: () => null });
  const isAway = error !== null && asProblem(error).status === 0;
  const version = typeof config.data?.version === 'string' ? config.data.version : null;
  return (
    <p className={classes.connection} role="status" data-state={isAway ? 'waiting' : socket}>
      {isAway ? 'reconnecting' : LIVE[socket]}
      {version !== null && <span className={classes.version}>v{version}</span>}
    </p>
  );
}
