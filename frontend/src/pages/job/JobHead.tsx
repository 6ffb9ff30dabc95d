/** The top of a job's page: its name, how it is and why, and what can be done with it. */
import type { Job } from '../../api/types';
import { Ago } from '../../components/Ago';
import { CopyAs } from '../../components/CopyAs';
import { PageTitle } from '../../components/PageTitle';
import { Phase } from '../../components/Phase';
import { showJob } from '../../recipes';
import { useTimes } from '../../times';
import { Failure } from './Failure';
import { failureOf } from './failureOf';
import { phaseOf } from './input';
import { JobActions } from './JobActions';
import classes from './JobHead.module.css';

interface JobHeadProps {
  job: Job;
  mayChange: boolean;
  /** When the platform answered last, where it is out of reach. */
  lostSinceMs: number | undefined;
}

export function JobHead({ job, mayChange, lostSinceMs }: JobHeadProps) {
  const times = useTimes();
  return (
    <PageTitle
      title={job.name}
      beside={
        <span className={classes.state}>
          <Phase phase={phaseOf(job)} />
          {lostSinceMs === undefined && (
            <span className={classes.since}>
              <Ago at={job.observed_since} isStill />
            </span>
          )}
          <strong className={classes.lost} role="status">
            {lostSinceMs !== undefined && `connection lost, figures from ${times.clock(lostSinceMs / 1000)}`}
          </strong>
        </span>
      }
      actions={
        <>
          {mayChange && <JobActions job={job} />}
          <CopyAs recipe={showJob(job.name)} what="show this job" />
        </>
      }
    />
  );
}

/** Why the job is as it is, where that is known. */
export function StateReason({ job, mayChange }: { job: Job; mayChange: boolean }) {
  if (failureOf(job) !== null)
    return (
      <div className={classes.failure}>
        <Failure job={job} mayChange={mayChange} />
      </div>
    );
  return job.reason === null ? null : <p className={classes.reason}>{job.reason}</p>;
}
