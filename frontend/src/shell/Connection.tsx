/** Whether the platform answers, and how live views are connected. */
import { useQuery } from '@tanstack/react-query';
import { isLost } from '../api/lost';
import { configQuery, jobsQuery } from '../api/queries';
import { useSocketState } from '../live/shared';
import type { SocketState } from '../live/socket';
import classes from './Connection.module.css';

const LOST = 'connection lost, trying again';

const LIVE: Record<SocketState, string> = {
  idle: 'connected',
  connecting: 'connecting',
  open: 'connected, live',
  waiting: LOST,
  'signed-out': 'signed out',
};

export function Connection() {
  const socket = useSocketState();
  const config = useQuery(configQuery);
  const { error, failureReason } = useQuery({ ...jobsQuery, select: () => null });
  const isAway = isLost({ error, failureReason });
  const version = typeof config.data?.version === 'string' ? config.data.version : null;
  return (
    <p className={classes.connection} role="status" data-state={isAway ? 'waiting' : socket}>
      {isAway ? LOST : LIVE[socket]}
      {version !== null && <span className={classes.version}>v{version}</span>}
    </p>
  );
}
