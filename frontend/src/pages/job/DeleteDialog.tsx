/** Delete a job with all its results, and go back to the others. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { jobsQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { deleteJob } from '../../recipes';

export function DeleteDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/jobs/{id}', { params: { path: { id: job.id } } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: jobsQuery.queryKey, exact: true });
      await navigate('/jobs');
    },
  });
  return (
    <ConfirmDialog
      title={`Delete ${job.name}?`}
      act="Delete"
      recipe={deleteJob(job.name)}
      what="delete this job"
      doing={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      It is stopped, and its state and all its results are removed. Nobody can bring them back.
    </ConfirmDialog>
  );
}
