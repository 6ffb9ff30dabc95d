/** What all running jobs take in and give out together. */
import { useQueries } from '@tanstack/react-query';
import { latestReportQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { Stat } from '../../components/Stat';
import { formatBytes, formatRate } from '../../format';

const JOBS_MAX = 20;

export function Throughput({ running }: { running: Job[] }) {
  const latest = useQueries({ queries: running.slice(0, JOBS_MAX).map((job) => latestReportQuery(job.id)) });
  const reports = latest.flatMap(({ data }) => (data ? [data] : []));
  const sum = (figure: 'tuplesPerS' | 'resultsPerS' | 'stateBytes') =>
    reports.length === 0 ? null : reports.reduce((total, report) => total + report[figure], 0);
  return (
    <>
      <Stat label="Tuples in" value={formatRate(sum('tuplesPerS'))} note="all running jobs" />
      <Stat label="Results out" value={formatRate(sum('resultsPerS'))} note="all running jobs" />
      <Stat label="State" value={formatBytes(sum('stateBytes'))} note="kept for joining" />
    </>
  );
}
