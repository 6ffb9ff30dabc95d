/** Change a stream's entry, as long as nobody else did meanwhile. */
import { Anchor } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Fragment, useRef, useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { answered, api } from '../../api/client';
import { asProblem } from '../../api/problem';
import { sampleQuery, streamQuery, streamsQuery } from '../../api/queries';
import type { Spec, Stream, StreamIn } from '../../api/types';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { ProblemView } from '../../components/ProblemView';
import { changeStream } from '../../recipes';
import { streamPath } from './address';
import { Conflict } from './Conflict';
import classes from './EditStreamPage.module.css';
import { EntryEditor } from './form/EntryEditor';
import type { Secrets } from './form/secrets';
import { useReaders } from './useReaders';

export function EditStreamPage() {
  const { name = '' } = useParams();
  const stream = useQuery(streamQuery(name));
  return (
    <>
      <PageTitle title={`Edit ${stream.data?.name ?? name}`} />
      {/* Not what was read some time ago: to change it would be refused. */}
      {stream.data !== undefined && stream.isFetchedAfterMount ? (
        <Edited key={stream.data.id} newest={stream.data} />
      ) : stream.isFetching ? (
        <Loading what="the stream" lines={6} />
      ) : (
        <ProblemView error={stream.error} onRetry={() => void stream.refetch()} />
      )}
    </>
  );
}

/** What is typed is a change of the version that it began with, whatever is read meanwhile. */
function Edited({ newest }: { newest: Stream }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [begun, setBegun] = useState(newest);
  const version = useRef(begun.version);
  const change = async (spec: Spec, secrets: Secrets) => {
    const changed = await answered(
      api.PATCH('/api/v1/streams/{id}', {
        params: { path: { id: begun.id }, header: { 'if-match': `"${String(version.current)}"` } },
        // What is wrong with an entry is for the platform to say.
        body: { spec: spec as StreamIn['spec'], secrets },
      }),
    );
    client.setQueryData(streamQuery(changed.name).queryKey, changed);
    await client.invalidateQueries({ queryKey: streamsQuery.queryKey, exact: true });
    client.removeQueries({ queryKey: sampleQuery(changed.name).queryKey });
    await navigate(streamPath(changed));
  };
  return (
    <>
      <Readers name={begun.name} />
      <EntryEditor
        key={begun.version}
        first={begun.spec}
        hasSecrets={begun.has_secrets}
        save={change}
        saveLabel="Save"
        recipe={(spec, secrets) => changeStream(begun.name, begun.version, spec, secrets ?? undefined)}
        what="change this stream"
        back={streamPath(begun)}
        onRefused={({ error, spec, again }) =>
          asProblem(error).code === 'changed_meanwhile' ? (
            <Conflict
              stream={begun}
              mine={spec}
              onTakeTheirs={(theirs) => {
                version.current = theirs.version;
                setBegun(theirs);
              }}
              onSaveMine={(theirs) => {
                version.current = theirs.version;
                again();
              }}
            />
          ) : null
        }
      />
    </>
  );
}

/** Jobs that read the stream, which do not see a change of its entry at once. */
function Readers({ name }: { name: string }) {
  const readers = useReaders(name);
  if (readers.length === 0) return null;
  return (
    <p className={classes.note}>
      Jobs that read it keep the entry as it was when they last changed, and take over what is saved here when they are
      changed themselves:{' '}
      {readers.map((job, place) => (
        <Fragment key={job.id}>
          {place > 0 && ', '}
          <Anchor component={Link} to={`/jobs/${job.id}?tab=change`} fz="sm" underline="always">
            {job.name}
          </Anchor>
        </Fragment>
      ))}
    </p>
  );
}
