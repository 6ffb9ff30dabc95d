/** The jobs that read a stream. */
import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { jobsQuery } from '../../api/queries';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { Phase } from '../../components/Phase';
import { ProblemView } from '../../components/ProblemView';
import { phaseOf } from '../job/input';
import classes from './UsedBy.module.css';
import { useReaders } from './useReaders';

export function UsedBy({ stream }: { stream: string }) {
  const jobs = useQuery(jobsQuery);
  const readers = useReaders(stream);
  return (
    <Panel title="Jobs that read it" flush>
      {jobs.error !== null && <ProblemView error={jobs.error} />}
      {jobs.isPending && <Loading what="jobs" lines={2} />}
      {jobs.data !== undefined && readers.length === 0 && (
        <Empty title="None">
          <Anchor component={Link} to="/jobs/new" fz="xs">
            Join it with another
          </Anchor>
        </Empty>
      )}
      <ul className={classes.jobs}>
        {readers.map((job) => (
          <li key={job.id} className={classes.job}>
            <Anchor component={Link} to={`/jobs/${job.id}`} fz="sm" fw={500}>
              {job.name}
            </Anchor>
            <Phase phase={phaseOf(job)} />
          </li>
        ))}
      </ul>
      {readers.length > 0 && <p className={classes.words}>Each keeps the entry as it was when the job last changed.</p>}
    </Panel>
  );
}
