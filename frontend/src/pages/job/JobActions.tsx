/** What can be done to a job: each button is for this job by its id, and shows what the API answered. */
import { ActionIcon, Button, Menu } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answered, api } from '../../api/client';
import { jobQuery, jobsQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { MoreIcon, PlayIcon, RestartIcon, StopIcon } from '../../components/icons';
import { ProblemView } from '../../components/ProblemView';
import { jobAction, type JobAction } from '../../recipes';
import { DeleteDialog } from './DeleteDialog';
import { RescaleDialog } from './RescaleDialog';

type Dialog = 'rescale' | 'delete' | null;

function act(id: string, action: JobAction): Promise<Job> {
  const params = { path: { id } };
  switch (action) {
    case 'start':
      return answered(api.POST('/api/v1/jobs/{id}/start', { params }));
    case 'stop':
      return answered(api.POST('/api/v1/jobs/{id}/stop', { params }));
    case 'restart':
      return answered(api.POST('/api/v1/jobs/{id}/restart', { params }));
  }
}

export function JobActions({ job }: { job: Job }) {
  const client = useQueryClient();
  const [dialog, setDialog] = useState<Dialog>(null);
  const action = useMutation({
    mutationFn: (asked: JobAction) => act(job.id, asked),
    onSuccess: (changed) => {
      client.setQueryData(jobQuery(job.id).queryKey, changed);
      return client.invalidateQueries({ queryKey: jobsQuery.queryKey, exact: true });
    },
  });
  const isWanted = job.wanted === 'running';
  const isGoing = job.wanted === 'deleted';
  const main: JobAction = isWanted ? 'stop' : 'start';
  return (
    <>
      {action.error !== null && <ProblemView error={action.error} />}
      <Button
        variant={isWanted ? 'default' : 'filled'}
        leftSection={isWanted ? <StopIcon /> : <PlayIcon />}
        disabled={isGoing}
        loading={action.isPending && action.variables === main}
        onClick={() => action.mutate(main)}
      >
        {isWanted ? 'Stop' : 'Start'}
      </Button>
      <CopyAs recipe={jobAction(job.name, main)} what={`${main} this job`} />
      {isWanted && (
        <Button
          variant="default"
          leftSection={<RestartIcon />}
          loading={action.isPending && action.variables === 'restart'}
          onClick={() => action.mutate('restart')}
        >
          Restart
        </Button>
      )}
      <Menu position="bottom-end" withinPortal={false}>
        <Menu.Target>
          <ActionIcon variant="default" size={30} aria-label="More to do with this job" disabled={isGoing}>
            <MoreIcon />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setDialog('rescale')}>Rescale…</Menu.Item>
          <Menu.Item onClick={() => setDialog('delete')}>Delete…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {dialog === 'rescale' && <RescaleDialog job={job} onClose={() => setDialog(null)} />}
      {dialog === 'delete' && <DeleteDialog job={job} onClose={() => setDialog(null)} />}
    </>
  );
}
