/** Register a relation: where its rows are, how often it is looked at, and a look at it before anything is kept. */
import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { Link, useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { relationsQuery } from '../../api/queries';
import { CopyAs } from '../../components/CopyAs';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { Rows } from '../../components/Rows';
import { formatCount } from '../../format';
import { createRelation } from '../../recipes';
import { relationPath } from './address';
import { AT_FIRST, entryOf, secretsOf, type Typed } from './entry';
import { EntryFields } from './EntryFields';

const ROWS_PX = 300;
export function NewRelationPage() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [typed, setTyped] = useState<Typed>(AT_FIRST);
  const spec = entryOf(typed);
  const secrets = secretsOf(typed);
  const test = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/relations/test', { body: { spec, secrets } })),
  });
  const create = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/relations', { body: { name: name.trim(), spec, secrets } })),
    onSuccess: async (relation) => {
      await client.invalidateQueries({ queryKey: relationsQuery.queryKey, exact: true });
      await navigate(relationPath(relation));
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  return (
    <>
      <PageTitle title="Register a relation" />
      <Panel title="Entry">
        <form noValidate onSubmit={submit}>
          <Stack maw={560}>
            <NameField name={name} onName={setName} />
            <EntryFields typed={typed} onTyped={setTyped} />
            {create.error !== null && <ProblemView error={create.error} />}
            <Group>
              <Button type="submit" loading={create.isPending}>
                Register
              </Button>
              <CopyAs recipe={createRelation(name.trim() || 'NAME', spec, secrets ?? undefined)} what="register this relation" />
              <Button variant="default" loading={test.isPending} onClick={() => test.mutate()}>
                Test
              </Button>
              <Button component={Link} to="/relations" variant="subtle" color="gray">
                Cancel
              </Button>
            </Group>
          </Stack>
        </form>
      </Panel>
      {test.error !== null && <ProblemView title="The relation cannot be read" error={test.error} />}
      {test.data !== undefined && (
        <Panel title="Test" note={`the first ${formatCount(test.data.rows.length)} rows`} flush>
          <Rows label="Tested rows" columns={test.data.columns} rows={test.data.rows} height={ROWS_PX} />
        </Panel>
      )}
    </>
  );
}

function NameField({ name, onName }: { name: string; onName: (name: string) => void }) {
  return (
    <TextInput
      label="Name"
      description="What queries call it: letters, digits and _"
      placeholder="customers"
      maxLength={200}
      autoComplete="off"
      value={name}
      onChange={(event) => onName(event.currentTarget.value)}
    />
  );
}
