/** The jobs that read a stream. */
import { useQuery } from '@tanstack/react-query';
import { jobsQuery } from '../../api/queries';
import type { Job } from '../../api/types';

export function useReaders(stream: string): Job[] {
  const jobs = useQuery(jobsQuery);
  return jobs.data?.data.filter((job) => job.streams.includes(stream)) ?? [];
}
