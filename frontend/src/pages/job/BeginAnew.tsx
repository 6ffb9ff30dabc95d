/** Lets a job that was given up begin without its state, once it was seen what that drops. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { diffQuery } from '../../api/queries';
import type { Job, JobChange } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { changeJob } from '../../recipes';
import { adviceOn, droppedText } from './change/effect';
import { useApply } from './change/useApply';

const ANEW: JobChange = { start_anew: true };

export function BeginAnew({ job }: { job: Job }) {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <Button variant="default" onClick={() => setAsks(true)}>
        Begin anew…
      </Button>
      {asks && <BeginAnewDialog job={job} onClose={() => setAsks(false)} />}
    </>
  );
}

export function BeginAnewDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const seen = useQuery(diffQuery(job.id, job.version, ANEW));
  const apply = useApply(job.id, onClose);
  const drops = seen.data?.drops ?? null;
  return (
    <ConfirmDialog
      title={`Begin ${job.name} anew?`}
      act="Drop it, and begin anew"
      recipe={changeJob(job.name, ANEW, job.version)}
      what="begin this job anew"
      doing={{ error: seen.error ?? apply.error, isPending: seen.isPending || apply.isPending }}
      onConfirm={() => {
        if (seen.data !== undefined) apply.mutate({ change: ANEW, version: job.version });
      }}
      onClose={onClose}
    >
      {seen.isPending ? 'It is looked at what is dropped.' : drops !== null && `${droppedText(drops)} ${adviceOn(drops)}`}
    </ConfirmDialog>
  );
}
