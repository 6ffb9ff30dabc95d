/** The versions of relations in jobs: which one is joined, how large it is, and why there is no newer one. */
import { Anchor, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { jobRelationsQuery, relationVersionsQuery } from '../../api/queries';
import type { RelationInJob } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { Phase } from '../../components/Phase';
import { ProblemView } from '../../components/ProblemView';
import { formatBytes, formatCount } from '../../format';
import { relationPath } from './address';
import classes from './VersionsPanel.module.css';

const SHOWN_MAX = 10;

export function VersionsInJobs({ relation }: { relation: string }) {
  const jobs = useQuery(relationVersionsQuery(relation));
  return (
    <Panel title="Versions in jobs" note="each job reads it for itself" flush>
      {jobs.error !== null && <ProblemView error={jobs.error} />}
      {jobs.isPending && <Loading what="versions" lines={2} />}
      {jobs.data?.data.length === 0 && <Empty title="No job joins it" />}
      {jobs.data?.data.map((one) => (
        <Versions key={one.job_id} of={one}>
          <Anchor component={Link} to={`/jobs/${one.job_id}`} fz="sm" fw={600}>
            {one.job}
          </Anchor>
          <Phase phase={one.phase} />
        </Versions>
      ))}
    </Panel>
  );
}

export function RelationsOfJob({ id }: { id: string }) {
  const relations = useQuery(jobRelationsQuery(id));
  return (
    <Panel title="Relations" flush>
      {relations.error !== null && <ProblemView error={relations.error} />}
      {relations.isPending && <Loading what="relations" lines={2} />}
      {relations.data?.data.map((one) => (
        <Versions key={one.relation} of={one}>
          <Anchor component={Link} to={relationPath({ id: one.relation, name: one.relation })} fz="sm" fw={600}>
            {one.relation}
          </Anchor>
        </Versions>
      ))}
    </Panel>
  );
}

function Versions({ of, children }: { of: RelationInJob; children: React.ReactNode }) {
  return (
    <div className={classes.one}>
      <div className={classes.head}>
        {children}
        <span className={classes.words}>
          {formatCount(of.refreshes)} refreshed, {formatCount(of.refresh_failures)} failed
        </span>
      </div>
      {of.reading_version !== null && of.reading_rows !== null && (
        <p className={classes.words} role="status">
          Reading version {formatCount(of.reading_version)}: {formatCount(of.reading_rows)} rows so far
        </p>
      )}
      {of.problem !== null && (
        <p className={classes.problem} role="status">
          No newer version: {of.problem} (<Ago at={of.looked_at} />)
        </p>
      )}
      {of.versions.length === 0 ? (
        <p className={classes.words}>Nothing was read yet.</p>
      ) : (
        <Table miw={460}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Version</Table.Th>
              <Table.Th scope="col">Rows</Table.Th>
              <Table.Th scope="col">Kept</Table.Th>
              <Table.Th scope="col">Read</Table.Th>
              <Table.Th scope="col">First used</Table.Th>
              <Table.Th scope="col">State</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {of.versions.slice(0, SHOWN_MAX).map((one) => (
              <Table.Tr key={one.version}>
                <Table.Td>{formatCount(one.version)}</Table.Td>
                <Table.Td>
                  {formatCount(one.rows)}
                  {one.bad > 0 && `, ${formatCount(one.bad)} bad`}
                </Table.Td>
                <Table.Td>{formatBytes(one.bytes)}</Table.Td>
                <Table.Td>
                  <Ago at={one.read_at} />
                </Table.Td>
                <Table.Td>{one.used_at === null ? 'not yet' : <Ago at={one.used_at} />}</Table.Td>
                <Table.Td>{one.state}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </div>
  );
}
