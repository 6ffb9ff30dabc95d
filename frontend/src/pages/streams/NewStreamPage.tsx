/** Register a stream: where it comes from, what its rows are, and a look at them before anything is kept. */
import { TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { streamQuery, streamsQuery } from '../../api/queries';
import type { Spec, StreamIn } from '../../api/types';
import { PageTitle } from '../../components/PageTitle';
import { createStream } from '../../recipes';
import { streamPath } from './address';
import { EntryEditor } from './form/EntryEditor';
import { said } from './form/Field';
import type { Secrets } from './form/secrets';
import { streamName } from './form/uploadName';

const AT_FIRST: Spec = { source: 'parquet' };

export function NewStreamPage() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const create = async (spec: Spec, secrets: Secrets) => {
    // What is wrong with an entry is for the platform to say.
    const body = { name: name.trim(), spec: spec as StreamIn['spec'], secrets };
    const stream = await answered(api.POST('/api/v1/streams', { body }));
    client.setQueryData(streamQuery(stream.name).queryKey, stream);
    await client.invalidateQueries({ queryKey: streamsQuery.queryKey, exact: true });
    await navigate(streamPath(stream));
  };
  return (
    <>
      <PageTitle title="Register a stream" />
      <EntryEditor
        first={AT_FIRST}
        head={(wrong, onTyped) => (
          <TextInput
            label="Name"
            placeholder="orders"
            maxLength={200}
            autoComplete="off"
            spellCheck={false}
            value={name}
            onChange={(event) => {
              setName(event.currentTarget.value);
              onTyped();
            }}
            {...said('What queries call it: letters, digits and _', wrong)}
          />
        )}
        onFile={(file) => setName((before) => (before.trim() === '' ? streamName(file) : before))}
        save={create}
        saveLabel="Register"
        recipe={(spec, secrets) => createStream(name.trim() || 'NAME', spec, secrets ?? undefined)}
        what="register this stream"
        back="/streams"
      />
    </>
  );
}
