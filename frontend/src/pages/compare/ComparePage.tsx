/** One query, and what every operator would make of it: side by side, and with more slots. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { asProblem, Problem } from '../../api/problem';
import { configQuery, jobQuery, jobsQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { ProblemView } from '../../components/ProblemView';
import { CompareView } from './CompareView';
import { settingOf } from './setting';

const SLOTS_UNTIL_KNOWN = 2;

const AT_FIRST = `SELECT ONLINE r.id, s.id
FROM r, s
WHERE r.k = s.k
WITHIN 10 SECONDS`;

const GONE = new Problem({
  type: 'about:blank',
  code: 'not_found',
  status: 404,
  title: 'That job is gone',
  detail: 'type a query, or choose another job',
});

export function ComparePage() {
  const jobs = useQuery(jobsQuery);
  const config = useQuery(configQuery);
  const slots = typeof config.data?.job_slots === 'number' ? config.data.job_slots : SLOTS_UNTIL_KNOWN;
  return (
    <>
      <PageTitle title="Compare operators" />
      {jobs.error !== null && <ProblemView error={jobs.error} onRetry={() => void jobs.refetch()} />}
      {jobs.isPending || config.isPending ? (
        <Loading what="the jobs" lines={6} />
      ) : (
        <Chosen jobs={jobs.data?.data ?? []} slots={slots} />
      )}
    </>
  );
}

/** The address says what is compared. What is typed stays, whatever becomes of the jobs meanwhile. */
function Chosen({ jobs, slots }: { jobs: Job[]; slots: number }) {
  const [parameters, setParameters] = useSearchParams();
  // Without a word of what is to be compared, the newest job is as good a beginning as any.
  const [newest] = useState(jobs[0]?.id ?? null);
  const typed = parameters.get('query');
  const id = parameters.get('job') ?? (typed === null ? newest : null);
  // By its id: it may be one that the list leaves out.
  const asked = useQuery({
    ...jobQuery(id ?? ''),
    enabled: id !== null,
    refetchInterval: false,
    initialData: () => jobs.find((one) => one.id === id),
  });
  if (asked.isLoading) return <Loading what="the job" lines={6} />;
  const isGone = asProblem(asked.error).status === 404;
  if (asked.error !== null && asked.data === undefined && !isGone) return <ProblemView error={asked.error} />;
  const job = isGone ? undefined : asked.data;
  return (
    <>
      {asked.error !== null && <ProblemView error={isGone ? GONE : asked.error} />}
      <CompareView
        key={id ?? 'typed'}
        job={job}
        jobs={jobs}
        queryAtFirst={job?.query ?? typed ?? AT_FIRST}
        settingAtFirst={settingOf(job, slots)}
        onChoose={(chosen, query) => setParameters(chosen === null ? { query } : { job: chosen })}
      />
    </>
  );
}
