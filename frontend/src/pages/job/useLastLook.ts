/** What is polled only while a job runs, asked once more when it has ended: its last commit came after the last look. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { OF_RUNNING } from '../../api/queries';
import type { Job } from '../../api/types';
import { isLive } from './input';

export function useLastLook(job: Pick<Job, 'id' | 'wanted' | 'observed'>): void {
  const client = useQueryClient();
  const { id } = job;
  const isNow = isLive(job);
  const was = useRef(isNow);
  useEffect(() => {
    if (was.current && !isNow) {
      // An answer that is on its way may be of before the commit: it is asked for again, too.
      for (const what of OF_RUNNING) void client.invalidateQueries({ queryKey: ['jobs', id, what] });
    }
    was.current = isNow;
  }, [client, id, isNow]);
}
