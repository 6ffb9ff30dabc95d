/** The newest figures of a job, and what was left out in the time that is shown; totals where no input comes. */
import { total, type Report } from '../../api/figures';
import type { Job } from '../../api/types';
import { Stat, Stats } from '../../components/Stat';
import { formatBytes, formatCount, formatDuration, formatRate, formatRatio, formatShort } from '../../format';
import { useTimes } from '../../times';
import { Approximate } from './Approximate';
import { inputWords, type Input } from './input';
import classes from './JobStats.module.css';
import { isApproximate, leftOutOf, missingWords, reconnects } from './leftOut';
import { Unmatched } from './Unmatched';

interface JobStatsProps {
  job: Job;
  reports: Report[];
  input: Input;
  /** What is held back though the input is over; null for nothing. */
  held: string | null;
  /** How far back the reports go. */
  span: string;
}

export function JobStats({ job, reports, input, held, span }: JobStatsProps) {
  const report = reports.at(-1);
  const leftOut = leftOutOf(reports);
  const missing = missingWords(leftOut);
  const again = reconnects(reports);
  const isComing = input.kind === 'coming';
  return (
    <Stats>
      {isComing ? (
        <Rates job={job} reports={reports} />
      ) : (
        <Totals reports={reports} input={input} held={held} />
      )}
      <Stat
        label="State"
        value={formatBytes(report?.stateBytes)}
        note={`${formatShort(report && total(report.liveTuples))} ${isComing ? 'live' : 'stored'} tuples`}
      />
      <Unmatched reports={reports} span={span} />
      <Stat
        label="Left out"
        value={report === undefined ? '–' : formatCount(leftOut.late + leftOut.shed + leftOut.unreadable)}
        note={
          missing === '' ? (
            `nothing in the last ${span}`
          ) : (
            <span className={classes.warning}>
              {missing} in the last {span}
            </span>
          )
        }
      />
      <Stat
        label="Generation"
        value={formatCount(job.generation)}
        note={
          <>
            {job.failures === 0 ? (
              'no failure since its last start'
            ) : (
              <span className={classes.warning}>{formatCount(job.failures)} failed in a row</span>
            )}
            {again > 0 && (
              <span className={classes.again}>
                its query began {again === 1 ? 'once' : `${formatCount(again)} times`} again in the last {span}, as a
                Python worker was late to connect
              </span>
            )}
          </>
        }
      />
    </Stats>
  );
}

/** While input comes. */
function Rates({ job, reports }: Pick<JobStatsProps, 'job' | 'reports'>) {
  const now = job.phase === 'running' ? reports.at(-1) : undefined;
  return (
    <>
      <Stat label="Tuples in" value={formatRate(now?.tuplesPerS)} note={job.streams.join(' ⋈ ')} />
      <Stat
        label="Results out"
        value={formatRate(now?.resultsPerS)}
        note={isApproximate(reports) ? <Approximate /> : `ρ ${formatRatio(now?.rho)} of what is looked at`}
      />
      <Stat label="Latency" value={formatDuration(now?.batchMs.p50)} note={`p95 ${formatDuration(now?.batchMs.p95)}`} />
    </>
  );
}

/** Where no input comes. */
function Totals({ reports, input, held }: Pick<JobStatsProps, 'reports' | 'input' | 'held'>) {
  const times = useTimes();
  const totals = reports.at(-1)?.totals;
  return (
    <>
      <Stat
        label="Input"
        value={input.kind === 'finished' ? 'finished' : 'none now'}
        note={`${inputWords(input, times)}${held === null ? '' : `; ${held}`}`}
      />
      <Stat label="Tuples in all" value={formatShort(totals?.tuples)} note="in this run" />
      <Stat
        label="Results in all"
        value={formatShort(totals?.results)}
        note={isApproximate(reports) ? <Approximate /> : 'in this run'}
      />
    </>
  );
}
