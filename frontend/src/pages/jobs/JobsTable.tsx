/** Jobs in rows: what each joins, how it is, and how fast. */
import { Anchor, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { latestReportQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Phase } from '../../components/Phase';
import { formatBytes, formatRate } from '../../format';
import { phaseOf } from '../job/input';
import { operatorOf } from '../job/operator';
import classes from './JobsTable.module.css';

/** Only so many are asked for their rates: the API limits requests. */
const WITH_RATES = 20;

export function JobsTable({ jobs }: { jobs: Job[] }) {
  const running = new Set(
    jobs
      .filter((job) => job.phase === 'running')
      .slice(0, WITH_RATES)
      .map((job) => job.id),
  );
  return (
    <Table className={classes.table} highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Job</Table.Th>
          <Table.Th scope="col">Phase</Table.Th>
          <Table.Th scope="col">Streams</Table.Th>
          <Table.Th scope="col">Operator</Table.Th>
          <Table.Th scope="col" className={classes.figure}>
            Tuples in
          </Table.Th>
          <Table.Th scope="col" className={classes.figure}>
            Results out
          </Table.Th>
          <Table.Th scope="col" className={classes.figure}>
            State
          </Table.Th>
          <Table.Th scope="col">Since</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {jobs.map((job) => (
          <Table.Tr key={job.id}>
            <Table.Td>
              <Anchor component={Link} to={`/jobs/${job.id}`} fw={600} fz="sm">
                {job.name}
              </Anchor>
            </Table.Td>
            <Table.Td>
              <Phase phase={phaseOf(job)} />
              {job.reason !== null && (
                <div className={classes.reason} title={job.reason}>
                  {job.reason}
                </div>
              )}
            </Table.Td>
            <Table.Td>{job.streams.join(' ⋈ ')}</Table.Td>
            <Table.Td>{operatorOf(job)}</Table.Td>
            {running.has(job.id) ? <Rates id={job.id} /> : <NoRates />}
            <Table.Td className={classes.since}>
              <Ago at={job.observed_since} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Rates({ id }: { id: string }) {
  const { data } = useQuery(latestReportQuery(id));
  return (
    <>
      <Table.Td className={classes.figure}>{formatRate(data?.tuplesPerS)}</Table.Td>
      <Table.Td className={classes.figure}>{formatRate(data?.resultsPerS)}</Table.Td>
      <Table.Td className={classes.figure}>{formatBytes(data?.stateBytes)}</Table.Td>
    </>
  );
}

const NoRates = () => (
  <>
    <Table.Td className={classes.figure}>–</Table.Td>
    <Table.Td className={classes.figure}>–</Table.Td>
    <Table.Td className={classes.figure}>–</Table.Td>
  </>
);
