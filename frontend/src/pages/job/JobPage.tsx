/** One job: how it is, how fast, what it finds, and what was done to it. */
import { Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useParams } from 'react-router';
import { isLost } from '../../api/lost';
import { jobQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { ProblemView } from '../../components/ProblemView';
import { mayChange } from '../../shell/mayChange';
import { useMe } from '../../shell/useMay';
import { AskPanel } from './AskPanel';
import { ReplaceDialog } from './change/ReplaceDialog';
import { useTyped } from './change/useTyped';
import { Definition } from './Definition';
import { Events } from './Events';
import { JobHead, StateReason } from './JobHead';
import classes from './JobPage.module.css';
import { Live } from './Live';
import { LogsPanel } from './logs/LogsPanel';
import { RejectedPanel } from './rejected/RejectedPanel';
import { Revisions } from './revisions/Revisions';
import { StartSteps } from './StartSteps';
import { useLastLook } from './useLastLook';
import { useTabs } from './useTabs';

// The editor is large, and only this tab has one.
const ChangePanel = lazy(() => import('./change/ChangePanel').then((panel) => ({ default: panel.ChangePanel })));

export function JobPage() {
  const { id = '' } = useParams();
  const job = useQuery(jobQuery(id));
  if (job.data !== undefined) {
    const seen = isLost(job) ? { lostSinceMs: job.dataUpdatedAt } : { error: job.error };
    return <JobView key={job.data.id} job={job.data} {...seen} />;
  }
  return (
    <>
      <PageTitle title="Job" />
      {job.isPending ? (
        <Loading what="the job" />
      ) : (
        <ProblemView error={job.error} onRetry={() => void job.refetch()} />
      )}
    </>
  );
}

interface JobViewProps {
  job: Job;
  error?: Error | null;
  /** When the platform answered last, where it is out of reach. */
  lostSinceMs?: number;
}

function JobView({ job, error = null, lostSinceMs }: JobViewProps) {
  useLastLook(job);
  const isMine = mayChange(useMe(), job);
  const { tabs, tab, turnTo } = useTabs(isMine);
  const change = useTyped(job, () => turnTo('change'));
  return (
    <div className={classes.page} data-lost={lostSinceMs !== undefined}>
      <JobHead job={job} mayChange={isMine} lostSinceMs={lostSinceMs} />
      {error !== null && <ProblemView error={error} />}
      <StateReason job={job} mayChange={isMine} />
      <StartSteps job={job} />
      <Tabs value={tab} keepMounted={false} onChange={turnTo}>
        <Tabs.List mb="md">
          {tabs.map(([value, label]) => (
            <Tabs.Tab key={value} value={value}>
              {label}
              {value === 'change' && change.hasTyped && (
                <span className={classes.typed} title="not applied yet">
                  {' '}
                  (typed)
                </span>
              )}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="live">
          <Live job={job} onTake={isMine ? change.take : null} />
        </Tabs.Panel>
        <Tabs.Panel value="ask">
          <AskPanel job={job} />
        </Tabs.Panel>
        <Tabs.Panel value="rejected">
          <RejectedPanel job={job} />
        </Tabs.Panel>
        <Tabs.Panel value="logs">
          <LogsPanel job={job} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <Events id={job.id} />
        </Tabs.Panel>
        <Tabs.Panel value="definition">
          <Definition job={job} mayChange={isMine} />
        </Tabs.Panel>
        <Tabs.Panel value="change">
          <Suspense fallback={<Loading what="the editor" />}>
            <ChangePanel job={job} typed={change.typed} onTyped={change.setTyped} />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="revisions">
          <Revisions job={job} onGoBack={isMine ? change.goBack : null} />
        </Tabs.Panel>
      </Tabs>
      {change.replace !== null && <ReplaceDialog onClose={change.keep} onReplace={change.replace} />}
    </div>
  );
}
