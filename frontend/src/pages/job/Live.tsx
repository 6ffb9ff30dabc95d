/** What a job does now, and did in the last while: figures, charts, stages, streams, results, units. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { isAdaptive } from '../../api/adaptive';
import type { Report } from '../../api/figures';
import { historyQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { Loading } from '../../components/Loading';
import { ProblemView } from '../../components/ProblemView';
import { RelationsOfJob } from '../relations/VersionsPanel';
import { Decisions } from './Decisions';
import { heldBack } from './heldBack';
import { inputOf, isLive } from './input';
import { JobCharts } from './JobCharts';
import { JobStats } from './JobStats';
import { isApproximate } from './leftOut';
import { LateFilesNotice } from './LateFilesNotice';
import classes from './Live.module.css';
import { OrderNotice } from './OrderNotice';
import { QueryText } from './QueryText';
import { labelOf, MINUTES_AT_FIRST, RangeControl } from './RangeControl';
import { ReadingPanel } from './ReadingPanel';
import { Snapshots } from './Snapshots';
import { StagesPanel } from './StagesPanel';
import { StorePanel, trafficOf } from './StorePanel';
import { StreamFigures } from './StreamFigures';
import { TailPanel } from './TailPanel';
import { Units } from './units/Units';

/** The same each time, so that charts are not drawn anew for nothing. */
const NONE: Report[] = [];

interface LiveProps {
  job: Job;
  /** Fills the form of a change; null for those who may not change the job. */
  onTake: ((fields: Record<string, string>) => void) | null;
}

export function Live({ job, onTake }: LiveProps) {
  const client = useQueryClient();
  const [minutes, setMinutes] = useState(MINUTES_AT_FIRST);
  const isFollowed = isLive(job);
  const history = useQuery({
    ...historyQuery(client, job.id, minutes, isFollowed),
    // Another range shows what is there until it comes.
    placeholderData: (before) => before,
  });
  const reports = history.data?.reports ?? NONE;
  const hasCommitted =
    reports.some((report) => report.results > 0) || (job.generation > 0 && job.observed === 'stopped');
  const span = labelOf(minutes);
  const input = inputOf(job, reports);
  const held = heldBack(job, input, reports.at(-1));
  return (
    <>
      <QueryText job={job} />
      {isFollowed && <OrderNotice report={reports.at(-1)} onTake={onTake} />}
      <LateFilesNotice report={reports.at(-1)} />
      <JobStats job={job} reports={reports} input={input} held={held} span={span} />
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
        <TailPanel job={job} input={input} held={held} isApproximate={isApproximate(reports)} />
      </div>
      <div className={classes.columns}>
        <Units report={reports.at(-1)} />
        {hasCommitted && <Snapshots id={job.id} isLive={isFollowed} />}
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
