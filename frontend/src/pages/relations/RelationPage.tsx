/** One relation: its first rows, its size, its versions in the jobs that join it, and a look for a new one. */
import { Button, Code } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { answered, api } from '../../api/client';
import { relationQuery, relationSampleQuery, relationVersionsQuery } from '../../api/queries';
import type { Relation } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { Rows } from '../../components/Rows';
import { Stat, Stats } from '../../components/Stat';
import { formatBytes, formatCount } from '../../format';
import { createRelation, refreshRelation, sampleRelation } from '../../recipes';
import { mayChange } from '../../shell/mayChange';
import { useMe } from '../../shell/useMay';
import { BadRecords } from '../streams/BadRecords';
import { badOf } from '../streams/countBad';
import { Skew } from '../streams/Skew';
import classes from '../streams/StreamPage.module.css';
import { refreshOf, relationPath } from './address';
import { DeleteRelationDialog } from './DeleteRelationDialog';
import { VersionsInJobs } from './VersionsPanel';

const ROWS_PX = 420;

export function RelationPage() {
  const { name = '' } = useParams();
  const relation = useQuery(relationQuery(name));
  if (relation.data !== undefined) return <RelationView key={relation.data.id} relation={relation.data} />;
  return (
    <>
      <PageTitle title={name} />
      {relation.isPending ? (
        <Loading what="the relation" />
      ) : (
        <ProblemView error={relation.error} onRetry={() => void relation.refetch()} />
      )}
    </>
  );
}

function RelationView({ relation }: { relation: Relation }) {
  const { name, spec } = relation;
  const me = useMe();
  const [isDeleting, setDeleting] = useState(false);
  const sample = useQuery(relationSampleQuery(name));
  return (
    <>
      <PageTitle
        title={name}
        actions={
          <>
            {mayChange(me, relation) && (
              <>
                <Refresh relation={name} />
                <Button component={Link} to={`${relationPath(relation)}/edit`} variant="default">
                  Edit
                </Button>
                <Button variant="default" onClick={() => setDeleting(true)}>
                  Delete…
                </Button>
              </>
            )}
          </>
        }
      />
      <Stats>
        <Stat label="Source" value={String(spec.source)} note={relation.has_secrets ? 'with a password' : undefined} />
        <Stat label="Refreshed" value={refreshOf(relation)} />
        <Stat label="Rows" value={formatCount(sample.data?.row_count)} note={badOf(sample.data)} />
        <Stat label="Size" value={formatBytes(sample.data?.bytes)} note={filesOf(sample.data?.files)} />
      </Stats>
      <div className={classes.columns}>
        <div className={classes.beside}>
          <VersionsInJobs relation={name} />
          <SamplePanel relation={name} />
        </div>
        <div className={classes.beside}>
          {sample.data !== undefined && <BadRecords sample={sample.data} />}
          {sample.data !== undefined && <Skew sample={sample.data} />}
          <Panel
            title="Entry"
            note={`changed ${formatCount(relation.version - 1)} times`}
            actions={<CopyAs recipe={createRelation(name, spec)} what="register this relation" />}
            flush
          >
            <Code block className={classes.entry} tabIndex={0} role="group" aria-label="The entry as JSON">
              {JSON.stringify(spec, null, 2)}
            </Code>
          </Panel>
        </div>
      </div>
      {isDeleting && <DeleteRelationDialog relation={relation} onClose={() => setDeleting(false)} />}
    </>
  );
}

function SamplePanel({ relation }: { relation: string }) {
  const sample = useQuery(relationSampleQuery(relation));
  return (
    <Panel
      title="Sample"
      note={sample.data && `the first ${formatCount(sample.data.rows.length)}`}
      actions={
        <>
          <Button variant="default" loading={sample.isFetching} onClick={() => void sample.refetch()}>
            Look again
          </Button>
          <CopyAs recipe={sampleRelation(relation)} what="look at this relation" />
        </>
      }
      flush
    >
      {sample.isPending && <Loading what="rows" lines={6} />}
      {sample.error !== null && <ProblemView title="The relation cannot be read" error={sample.error} />}
      {sample.data?.rows.length === 0 && <Empty title="It has no row" />}
      {sample.data !== undefined && sample.data.rows.length > 0 && (
        <Rows label="Sample rows" columns={sample.data.columns} rows={sample.data.rows} height={ROWS_PX} />
      )}
    </Panel>
  );
}

const filesOf = (files: number | null | undefined): string | undefined =>
  files == null ? undefined : `in ${formatCount(files)} ${files === 1 ? 'file' : 'files'}`;

/** Have the running jobs look for a new version; it says which they are. */
function Refresh({ relation }: { relation: string }) {
  const client = useQueryClient();
  const refresh = useMutation({
    mutationFn: () =>
      answered(api.POST('/api/v1/relations/{id}/refresh', { params: { path: { id: relation } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: relationVersionsQuery(relation).queryKey }),
  });
  return (
    <>
      <span role="status">
        {refresh.data !== undefined &&
          (refresh.data.jobs.length === 0
            ? 'No running job joins it.'
            : `${refresh.data.jobs.join(', ')} ${refresh.data.jobs.length === 1 ? 'looks' : 'look'} for a new version.`)}
      </span>
      {refresh.error !== null && <ProblemView error={refresh.error} />}
      <Button loading={refresh.isPending} onClick={() => refresh.mutate()}>
        Refresh
      </Button>
      <CopyAs recipe={refreshRelation(relation)} what="have it looked at" />
    </>
  );
}
