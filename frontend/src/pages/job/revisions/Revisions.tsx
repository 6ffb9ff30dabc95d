/** What the job was: its versions, two of them side by side, and the way back to one. */
import { Button, Radio, Table, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { jobEventsQuery, revisionsQuery } from '../../../api/queries';
import type { Job } from '../../../api/types';
import { Ago } from '../../../components/Ago';
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
import { usePeople } from './usePeople';
import { changedWords, REVISIONS_MAX, versionsOf, type Version } from './versions';

interface RevisionsProps {
  job: Job;
  /** Null for who may not change the job. */
  onGoBack: ((definition: Definition) => void) | null;
}

export function Revisions({ job, onGoBack }: RevisionsProps) {
  const revisions = useQuery({ ...revisionsQuery(job.id, job.version), placeholderData: (before) => before });
  const events = useQuery(jobEventsQuery(job.id));
  const versions = revisions.data ? versionsOf(job, revisions.data.data, events.data?.data ?? []) : [];
  return (
    <div className={classes.columns}>
      <Panel
        title="Versions"
        note={
          versions.length > REVISIONS_MAX
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
  const { hasPeople, nameOf } = usePeople();
  const after = versions.find(({ version }) => version === chosen.after) ?? versions[0];
  const before = versions.find(({ version }) => version === chosen.before) ?? versions[1];
  return (
    <>
      <div className={classes.scrolled} role="region" aria-label="List of versions" tabIndex={0}>
        <Table className={classes.table} highlightOnHover>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col" className={classes.choice}>
                Before
              </Table.Th>
              <Table.Th scope="col" className={classes.choice}>
                After
              </Table.Th>
              <Table.Th scope="col">Version</Table.Th>
              <Table.Th scope="col">Made</Table.Th>
              {hasPeople && <Table.Th scope="col">By</Table.Th>}
              <Table.Th scope="col">What it changed</Table.Th>
              <Table.Th scope="col">
                <VisuallyHidden>Go back</VisuallyHidden>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {versions.map((one, place) => (
              <Table.Tr key={one.version}>
                <Table.Td className={classes.choice}>
                  <Radio
                    size="xs"
                    name="before"
                    aria-label={`Version ${String(one.version)} as before`}
                    checked={one === before}
                    onChange={() => choose({ ...chosen, before: one.version })}
                  />
                </Table.Td>
                <Table.Td className={classes.choice}>
                  <Radio
                    size="xs"
                    name="after"
                    aria-label={`Version ${String(one.version)} as after`}
                    checked={one === after}
                    onChange={() => choose({ ...chosen, after: one.version })}
                  />
                </Table.Td>
                <Table.Td className={classes.version}>
                  {one.version}
                  {one.isCurrent && <span className={classes.current}>now</span>}
                </Table.Td>
                <Table.Td className={classes.since}>
                  <Ago at={one.since} />
                </Table.Td>
                {hasPeople && <Table.Td className={classes.since}>{nameOf(one.actorId)}</Table.Td>}
                <Table.Td className={classes.changed}>
                  {place === versions.length - 1 ? beginningOf(one) : changedWords(one) || 'nothing'}
                </Table.Td>
                <Table.Td className={classes.action}>
                  {!one.isCurrent && onGoBack !== null && (
                    <Button
                      variant="default"
                      aria-label={`Go back to version ${String(one.version)}`}
                      onClick={() => onGoBack(one.definition)}
                    >
                      Go back
                    </Button>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {after && before ? (
        <Compared before={before} after={after} />
      ) : (
        <Empty title="The job was never changed">Each change keeps what was there before.</Empty>
      )}
    </>
  );
}

const beginningOf = ({ since }: Version): string =>
  since === null ? 'older ones are not listed' : 'the job was created';

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
