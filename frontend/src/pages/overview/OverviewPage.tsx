/** The platform at a glance: what runs, what happened, and what can be tried. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { demosQuery, eventsQuery, jobsQuery, machinesQuery, streamsQuery } from '../../api/queries';
import { Empty } from '../../components/Empty';
import { EventList } from '../../components/EventList';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { Stat, Stats } from '../../components/Stat';
import { formatCount } from '../../format';
import { JobsTable } from '../jobs/JobsTable';
import { Demos } from './Demos';
import { Machines } from './Machines';
import classes from './OverviewPage.module.css';
import { Throughput } from './Throughput';

export function OverviewPage() {
  const jobs = useQuery(jobsQuery);
  const streams = useQuery(streamsQuery);
  const demos = useQuery(demosQuery);
  const machines = useQuery(machinesQuery);
  const all = jobs.data?.data ?? [];
  const running = all.filter((job) => job.phase === 'running');
  const failing = all.filter((job) => ['failed', 'recovering', 'unknown'].includes(job.phase));
  const names = new Map(all.map((job) => [job.id, job.name]));
  return (
    <>
      <PageTitle
        title="Overview"
        actions={
          <Button component={Link} to="/jobs/new">
            New join
          </Button>
        }
      />
      {jobs.error !== null && <ProblemView error={jobs.error} />}
      <Stats>
        <Stat
          label="Running"
          value={jobs.data ? formatCount(running.length) : '–'}
          note={`of ${formatCount(all.length)} jobs`}
        />
        <Stat
          label="In trouble"
          value={jobs.data ? formatCount(failing.length) : '–'}
          note={failing[0]?.name ?? 'none'}
        />
        <Stat label="Streams" value={streams.data ? formatCount(streams.data.data.length) : '–'} note="registered" />
        <Throughput running={running} />
      </Stats>
      <div className={classes.columns}>
        <div className={classes.column}>
          <Panel title="Jobs" flush>
            {jobs.data === undefined ? (
              jobs.isPending && <Loading what="jobs" />
            ) : all.length === 0 ? (
              <Empty title="Nothing runs yet">Start one of the demos, or join your own streams.</Empty>
            ) : (
              <JobsTable jobs={all} />
            )}
          </Panel>
          <Machines machines={machines.data?.data ?? []} />
          <Panel title="Demos" note="the papers' workloads, from generators: no data is needed">
            {demos.data === undefined ? demos.isPending && <Loading what="demos" /> : <Demos demos={demos.data} />}
          </Panel>
        </div>
        <WhatHappened jobs={names} />
      </div>
    </>
  );
}

function WhatHappened({ jobs }: { jobs: Map<string, string> }) {
  const events = useQuery(eventsQuery);
  return (
    <Panel title="What happened" flush>
      {events.data === undefined ? (
        events.isPending && <Loading what="events" />
      ) : (
        <EventList events={events.data.data} jobs={jobs} />
      )}
    </Panel>
  );
}
