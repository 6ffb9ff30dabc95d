/** What happened, newest first. */
import { Anchor } from '@mantine/core';
import { Link } from 'react-router';
import type { Event } from '../api/types';
import { Ago } from './Ago';
import { Empty } from './Empty';
import classes from './EventList.module.css';

interface EventListProps {
  events: Event[];
  /** Names of jobs by id, where the events are of several. */
  jobs?: Map<string, string>;
}

export function EventList({ events, jobs }: EventListProps) {
  if (events.length === 0) return <Empty title="Nothing happened yet" />;
  return (
    <ol className={classes.events}>
      {events.map((event) => (
        <li key={event.id} className={classes.event} data-severity={event.severity}>
          <span className={classes.message}>{event.message}</span>
          <span className={classes.about}>
            {event.job_id !== null && jobs?.has(event.job_id) === true && (
              <>
                <Anchor component={Link} to={`/jobs/${event.job_id}`} fz="xs" underline="always">
                  {jobs.get(event.job_id)}
                </Anchor>
                {' · '}
              </>
            )}
            {event.kind} · <Ago at={event.at} />
          </span>
        </li>
      ))}
    </ol>
  );
}
