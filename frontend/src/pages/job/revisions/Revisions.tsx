/** What the job was: its versions, two of them side by side, and the way back to one. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { madeQuery, revisionsQuery } from '../../../api/queries';
import type { Job } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { Empty } from '../../../components/Empty';
import { Loading } from '../../../components/Loading';
import { Panel } from '../../../components/Panel';
import { ProblemView } from '../../../components/ProblemView';
import { formatCount } from '../../../format';
import { jobRevisions } from '../../../recipes';
import { Changes } from '../change/Changes';
import { changesBetween, type Definition } from '../change/definition';
import classes from './Revisions.module.css';
import { versionsOf, type Version } from './versions';
import { VersionsTable } from './VersionsTable';

interface RevisionsProps {
  job: Job;
  /** Null for who may not change the job. */
  onGoBack: ((definition: Definition) => void) | null;
}

export function Revisions({ job, onGoBack }: RevisionsProps) {
  const revisions = useQuery({ ...revisionsQuery(job.id, job.version), placeholderData: (before) => before });
  const events = useQuery({ ...madeQuery(job.id, job.version), placeholderData: (before) => before });
  const versions = revisions.data ? versionsOf(job, revisions.data, events.data ?? []) : [];
  return (
    <div className={classes.columns}>
      <Panel
        title="Versions"
        note={
          revisions.data?.has_more === true
            ? `the newest ${formatCount(versions.length)}`
            : versions.length > 0 && `${formatCount(versions.length)}, newest first`
        }
        actions={<CopyAs recipe={jobRevisions(job.name)} what="list the versions of this job" />}
        flush
      >
        {revisions.error !== null && (
          <ProblemView error={revisions.error} onRetry={() => void revisions.refetch()} />
        )}
        {revisions.data === undefined ? (
          revisions.isPending && <Loading what="versions" />
        ) : (
          <Chosen key={job.id} versions={versions} onGoBack={onGoBack} />
        )}
      </Panel>
    </div>
  );
}

function Chosen({ versions, onGoBack }: { versions: Version[]; onGoBack: RevisionsProps['onGoBack'] }) {
  const [chosen, choose] = useState<{ before?: number; after?: number }>({});
  const after = versions.find(({ version }) => version === chosen.after) ?? versions[0];
  const before = versions.find(({ version }) => version === chosen.before) ?? versions[1];
  return (
    <>
      <VersionsTable
        versions={versions}
        before={before}
        after={after}
        onChoose={(as, version) => choose({ ...chosen, [as]: version })}
        onGoBack={onGoBack}
      />
      {after && before ? (
        <Compared before={before} after={after} />
      ) : (
        <Empty title="The job was never changed">Each change keeps what was there before.</Empty>
      )}
    </>
  );
}

function Compared({ before, after }: { before: Version; after: Version }) {
  const changes = changesBetween(before.definition, after.definition);
  return (
    <section className={classes.compared} aria-label="What differs">
      <h3 className={classes.heading}>
        From version {before.version} to {after.version}
      </h3>
      {changes.length === 0 ? (
        <Empty title="They are the same">Entries of streams are not part of what is kept here.</Empty>
      ) : (
        <Changes
          changes={changes}
          before={`version ${String(before.version)}`}
          after={`version ${String(after.version)}`}
        />
      )}
    </section>
  );
}
