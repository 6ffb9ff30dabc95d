/** One job: how it is, how fast, what it finds, and what was done to it. */
import { Tabs } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useParams, useSearchParams } from 'react-router';
import { isAdaptive } from '../../api/adaptive';
import type { Report } from '../../api/figures';
import { isLost } from '../../api/lost';
import { historyQuery, jobEventsQuery, jobQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { Ago } from '../../components/Ago';
import { CopyAs } from '../../components/CopyAs';
import { EventList } from '../../components/EventList';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { Phase } from '../../components/Phase';
import { ProblemView } from '../../components/ProblemView';
import { showJob } from '../../recipes';
import { useMe } from '../../shell/useMay';
import { useTimes } from '../../times';
import { RelationsOfJob } from '../relations/VersionsPanel';
import { AskPanel } from './AskPanel';
import type { Definition as JobDefinition } from './change/definition';
import { changeOf, formOf, isEmpty, type Typed } from './change/form';
import { ReplaceDialog } from './change/ReplaceDialog';
import { Definition } from './Definition';
import { Failure } from './Failure';
import { failureOf } from './failureOf';
import { inputOf, phaseOf } from './input';
import { JobActions } from './JobActions';
import { Decisions } from './Decisions';
import { JobCharts } from './JobCharts';
import classes from './JobPage.module.css';
import { JobStats } from './JobStats';
import { isApproximate } from './leftOut';
import { LogsPanel } from './logs/LogsPanel';
import { mayChange } from '../../shell/mayChange';
import { OrderNotice } from './OrderNotice';
import { QueryText } from './QueryText';
import { ReadingPanel } from './ReadingPanel';
import { labelOf, MINUTES_AT_FIRST, RangeControl } from './RangeControl';
import { RejectedPanel } from './rejected/RejectedPanel';
import { Revisions } from './revisions/Revisions';
import { Snapshots } from './Snapshots';
import { StagesPanel } from './StagesPanel';
import { StorePanel, trafficOf } from './StorePanel';
import { StreamFigures } from './StreamFigures';
import { TailPanel } from './TailPanel';
import { Units } from './units/Units';

// The editor is large, and only this tab has one.
const ChangePanel = lazy(() => import('./change/ChangePanel').then((panel) => ({ default: panel.ChangePanel })));

const TABS = {
  live: 'Live',
  ask: 'Ask',
  rejected: 'Rejected rows',
  logs: 'Logs',
  events: 'Events',
  definition: 'Definition',
  change: 'Change',
  revisions: 'Revisions',
};
/** The same each time, so that charts are not drawn anew for nothing. */
const NONE: Report[] = [];

/** Those who may not change a job may not read its logs either. */
const FOR_CHANGERS = new Set(['logs', 'change']);

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
  const [parameters, setParameters] = useSearchParams();
  const [typed, setTyped] = useState<Typed | null>(null);
  const [instead, setInstead] = useState<Typed | null>(null);
  const times = useTimes();
  const isMine = mayChange(useMe(), job);
  const tabs = Object.entries(TABS).filter(([value]) => isMine || !FOR_CHANGERS.has(value));
  const chosen = parameters.get('tab') ?? 'live';
  const tab = tabs.some(([value]) => value === chosen) ? chosen : 'live';
  const hasTyped = typed !== null && !isEmpty(changeOf(typed.base, typed.form));
  const fill = (next: Typed) => {
    setInstead(null);
    setTyped(next);
    setParameters({ tab: 'change' });
  };
  const fillOrAsk = hasTyped ? setInstead : fill;
  const goBack = (definition: JobDefinition) => fillOrAsk({ base: job, form: formOf(definition) });
  const take = (fields: Record<string, string>) => {
    const form = formOf(job);
    fillOrAsk({ base: job, form: { ...form, fields: { ...form.fields, ...fields } } });
  };
  return (
    <div className={classes.page} data-lost={lostSinceMs !== undefined}>
      <PageTitle
        title={job.name}
        beside={
          <span className={classes.state}>
            <Phase phase={phaseOf(job)} />
            {lostSinceMs === undefined && (
              <span className={classes.since}>
                <Ago at={job.observed_since} isStill />
              </span>
            )}
            <strong className={classes.lost} role="status">
              {lostSinceMs !== undefined && `connection lost, figures from ${times.clock(lostSinceMs / 1000)}`}
            </strong>
          </span>
        }
        actions={
          <>
            {isMine && <JobActions job={job} />}
            <CopyAs recipe={showJob(job.name)} what="show this job" />
          </>
        }
      />
      {error !== null && <ProblemView error={error} />}
      {failureOf(job) !== null ? (
        <div className={classes.failure}>
          <Failure job={job} mayChange={isMine} />
        </div>
      ) : (
        job.reason !== null && <p className={classes.reason}>{job.reason}</p>
      )}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(next) => setParameters(next === 'live' ? {} : { tab: next ?? 'live' })}
      >
        <Tabs.List mb="md">
          {tabs.map(([value, label]) => (
            <Tabs.Tab key={value} value={value}>
              {label}
              {value === 'change' && hasTyped && (
                <span className={classes.typed} title="not applied yet">
                  {' '}
                  (typed)
                </span>
              )}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="live">
          <Live job={job} onTake={isMine ? take : null} />
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
            <ChangePanel job={job} typed={typed} onTyped={setTyped} />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="revisions">
          <Revisions job={job} onGoBack={isMine ? goBack : null} />
        </Tabs.Panel>
      </Tabs>
      {instead !== null && <ReplaceDialog onClose={() => setInstead(null)} onReplace={() => fill(instead)} />}
    </div>
  );
}

interface LiveProps {
  job: Job;
  /** Fills the form of a change; null for those who may not change the job. */
  onTake: ((fields: Record<string, string>) => void) | null;
}

function Live({ job, onTake }: LiveProps) {
  const client = useQueryClient();
  const [minutes, setMinutes] = useState(MINUTES_AT_FIRST);
  const isLive = job.wanted === 'running' || job.observed !== 'stopped';
  const history = useQuery({
    ...historyQuery(client, job.id, minutes, isLive),
    // Another range shows what is there until it comes.
    placeholderData: (before) => before,
  });
  const reports = history.data?.reports ?? NONE;
  const hasCommitted =
    reports.some((report) => report.results > 0) || (job.generation > 0 && job.observed === 'stopped');
  const span = labelOf(minutes);
  const input = inputOf(job, reports);
  return (
    <>
      <QueryText job={job} />
      {isLive && <OrderNotice report={reports.at(-1)} onTake={onTake} />}
      <JobStats job={job} reports={reports} input={input} span={span} />
      {history.error !== null && <ProblemView error={history.error} />}
      {history.isPending ? (
        <Loading what="charts" lines={6} />
      ) : (
        <JobCharts
          reports={reports}
          input={input}
          range={<RangeControl minutes={minutes} onChange={setMinutes} />}
        />
      )}
      <div className={classes.stages}>
        <StagesPanel report={reports.at(-1)} isComing={job.phase === 'running' && input.kind === 'coming'} />
      </div>
      <div className={classes.streams}>
        <StreamFigures job={job} reports={reports} input={input} span={span} />
      </div>
      <OfSomeJobs job={job} reports={reports} span={span} />
      <div className={classes.results}>
        <TailPanel job={job} input={input} isApproximate={isApproximate(reports)} />
      </div>
      <div className={classes.columns}>
        <Units report={reports.at(-1)} />
        {hasCommitted && <Snapshots id={job.id} isLive={isLive} />}
      </div>
    </>
  );
}

/** What only some jobs have: units that come and go, a state in a store, relations. */
function OfSomeJobs({ job, reports, span }: { job: Job; reports: Report[]; span: string }) {
  return (
    <>
      {isAdaptive(reports) && (
        <div className={classes.streams}>
          <Decisions reports={reports} span={span} />
        </div>
      )}
      {trafficOf(reports) !== null && (
        <div className={classes.streams}>
          <StorePanel reports={reports} span={span} />
        </div>
      )}
      {job.relations.length > 0 && (
        <>
          <div className={classes.streams}>
            <ReadingPanel report={reports.at(-1)} />
          </div>
          <div className={classes.streams}>
            <RelationsOfJob id={job.id} />
          </div>
        </>
      )}
    </>
  );
}

function Events({ id }: { id: string }) {
  const events = useQuery(jobEventsQuery(id));
  return (
    <Panel title="Events" note="newest first" flush>
      {events.error !== null && <ProblemView error={events.error} />}
      {events.data === undefined ? (
        events.isPending && <Loading what="events" />
      ) : (
        <EventList events={events.data.data} />
      )}
    </Panel>
  );
}
