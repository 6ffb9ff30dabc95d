/** Stop a query beside a job's own; its results stay. */
import type { Job, JobChange } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { changeJob } from '../../recipes';
import { useApply } from './change/useApply';
import { resultsOf, type FurtherQuery } from './furtherQueries';

interface StopQueryDialogProps {
  job: Job;
  of: FurtherQuery;
  onClose: () => void;
}

export function StopQueryDialog({ job, of: { name, query }, onClose }: StopQueryDialogProps) {
  const change: JobChange = { queries: { [name]: { query, stopped: true } } };
  const apply = useApply(job.id, onClose);
  return (
    <ConfirmDialog
      title={`Stop the query ${name}?`}
      act="Stop it"
      recipe={changeJob(job.name, change, job.version)}
      what="stop this query"
      doing={apply}
      onConfirm={() => apply.mutate({ change, version: job.version })}
      onClose={onClose}
    >
      Its results are completed, and stay as {resultsOf(job.name, name)}. Tuples that no other query needs go, so that it
      cannot go on later; another query may be started under another name.{' '}
      {job.wanted === 'running' ? 'The job restarts after the batch that runs.' : 'It ends at the next start.'}
    </ConfirmDialog>
  );
}
