/** Why a job failed, in one sentence, with what tells more and the way out. */
import { Anchor, Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from 'react-router';
import { answered, api } from '../../api/client';
import { jobQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { Ago } from '../../components/Ago';
import { CopyAs } from '../../components/CopyAs';
import { RestartIcon } from '../../components/icons';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { jobAction } from '../../recipes';
import { BeginAnew } from './BeginAnew';
import { failureOf } from './failureOf';
import { Notice } from './Notice';

export function Failure({ job, mayChange }: { job: Job; mayChange: boolean }) {
  const client = useQueryClient();
  const restart = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/jobs/{id}/restart', { params: { path: { id: job.id } } })),
    onSuccess: (changed) => client.setQueryData(jobQuery(job.id).queryKey, changed),
  });
  const failure = failureOf(job);
  if (failure === null) return null;
  const generation = String(failure.generation);
  return (
    <Notice
      tone="bad"
      title={
        <>
          Generation {generation} failed
          {failure.since !== null && (
            <>
              {' '}
              <Ago at={failure.since} />
            </>
          )}
        </>
      }
      actions={
        <>
          {mayChange && (
            <>
              <Button leftSection={<RestartIcon />} loading={restart.isPending} onClick={() => restart.mutate()}>
                Restart now
              </Button>
              <CopyAs recipe={jobAction(job.name, 'restart')} what="restart this job" />
              {job.phase === 'failed' && <BeginAnew job={job} />}
              <Anchor component={Link} to={`?tab=logs&generation=${generation}`} fz="sm" underline="always">
                Log of generation {generation}
              </Anchor>
            </>
          )}
          <Anchor component={Link} to="?tab=events" fz="sm" underline="always">
            Events
          </Anchor>
          {mayChange && (
            <Anchor component={Link} to="?tab=change" fz="sm" underline="always">
              Change the job
            </Anchor>
          )}
        </>
      }
    >
      <p>
        <b>{failure.cause}</b>
      </p>
      <p>
        {formatCount(job.failures)} {job.failures === 1 ? 'failure' : 'failures'} since it last ran well. {failure.next}
      </p>
      {restart.error !== null && <ProblemView error={restart.error} />}
    </Notice>
  );
}
