/** What the running jobs take in and give out together. */
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
  const isCut = running.length > JOBS_MAX;
  const which = isCut ? `the newest ${String(JOBS_MAX)} running jobs` : 'all running jobs';
  return (
    <>
      <Stat label="Tuples in" value={formatRate(sum('tuplesPerS'))} note={which} />
      <Stat label="Results out" value={formatRate(sum('resultsPerS'))} note={which} />
      <Stat label="State" value={formatBytes(sum('stateBytes'))} note={isCut ? `kept by ${which}` : 'kept for joining'} />
    </>
  );
}
