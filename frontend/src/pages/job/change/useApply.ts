/** Sends a change for the version that was looked at: whoever was faster wins, and the other one is told. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answered, api } from '../../../api/client';
import { asProblem } from '../../../api/problem';
import { jobEventsQuery, jobQuery, jobsQuery } from '../../../api/queries';
import type { Job, JobChange } from '../../../api/types';

const CHANGED_MEANWHILE = 412;

interface Asked {
  change: JobChange;
  version: number;
}

export const isOvertaken = (error: unknown): boolean => asProblem(error).status === CHANGED_MEANWHILE;

export function useApply(id: string, onApplied: (job: Job) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ change, version }: Asked) => {
      const params = { path: { id }, header: { 'if-match': `"${String(version)}"` } };
      return answered(api.PATCH('/api/v1/jobs/{id}', { params, body: change }));
    },
    onSuccess: (changed) => {
      client.setQueryData(jobQuery(id).queryKey, changed);
      void client.invalidateQueries({ queryKey: jobsQuery.queryKey, exact: true });
      void client.invalidateQueries({ queryKey: jobEventsQuery(id).queryKey });
      onApplied(changed);
    },
    onError: (error) => {
      if (isOvertaken(error)) void client.invalidateQueries({ queryKey: jobQuery(id).queryKey, exact: true });
    },
  });
}
