/** All jobs. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { jobsQuery } from '../../api/queries';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { JobsTable } from './JobsTable';

export function JobsPage() {
  const jobs = useQuery(jobsQuery);
  return (
    <>
      <PageTitle
        title="Jobs"
        actions={
          <Button component={Link} to="/jobs/new">
            New join
          </Button>
        }
      />
      {jobs.error !== null && <ProblemView error={jobs.error} />}
      <Panel title="All jobs" note={jobs.data && `${formatCount(jobs.data.data.length)}, newest first`} flush>
        {jobs.data === undefined ? (
          jobs.isPending && <Loading what="jobs" />
        ) : jobs.data.data.length === 0 ? (
          <Empty title="No job yet">
            A job is a join that runs, or is to. Make one from a query, or start a demo on the overview.
          </Empty>
        ) : (
          <JobsTable jobs={jobs.data.data} />
        )}
      </Panel>
    </>
  );
}
