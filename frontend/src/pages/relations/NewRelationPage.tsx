/** Register a relation: where its rows are, how often it is looked at, and a look at it before anything is kept. */
import { Button, Group, PasswordInput, Select, Stack, TextInput } from '@mantine/core';
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
import { AT_FIRST, entryOf, fieldsOf, hasPassword, secretsOf, SOURCES, type FieldName, type Typed } from './entry';

const ROWS_PX = 300;
const EXAMPLES: Record<FieldName, [label: string, example: string, says: string]> = {
  path: ['Path', '/data/customers', 'A file, a folder or a pattern on the platform'],
  url: ['Database', 'postgresql://user@host/database', 'Without its password: everybody sees an entry'],
  table: ['Table', 'rates', 'A table or view; in PostgreSQL with its schema before it, where that is needed'],
  hosts: ['Hosts', '10.0.0.5, 10.0.0.6', 'Some nodes of the cluster'],
  keyspace: ['Keyspace', 'sales', 'That the table is in'],
  username: ['User', 'reader', 'Who logs in; empty where nobody has to'],
  refresh: ['Refresh', '10min', 'How often running jobs look for a new version; empty for only when asked'],
};

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
            <EntryFields name={name} onName={setName} typed={typed} onTyped={setTyped} />
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

interface EntryFieldsProps {
  name: string;
  onName: (name: string) => void;
  typed: Typed;
  onTyped: (typed: Typed) => void;
}

function EntryFields({ name, onName, typed, onTyped }: EntryFieldsProps) {
  return (
    <>
      <TextInput
        label="Name"
        description="What queries call it: letters, digits and _"
        placeholder="customers"
        maxLength={200}
        autoComplete="off"
        value={name}
        onChange={(event) => onName(event.currentTarget.value)}
      />
      <Select
        label="Source"
        allowDeselect={false}
        data={SOURCES}
        value={typed.source}
        onChange={(source) => onTyped({ ...typed, source: source ?? typed.source })}
      />
      {fieldsOf(typed.source).map((field) => {
        const [label, example, says] = EXAMPLES[field];
        return (
          <TextInput
            key={field}
            label={label}
            description={says}
            placeholder={example}
            autoComplete="off"
            spellCheck={false}
            value={typed[field]}
            onChange={(event) => onTyped({ ...typed, [field]: event.currentTarget.value })}
          />
        );
      })}
      {hasPassword(typed.source) && (
        <PasswordInput
          label="Password"
          description="Of a database server: kept encrypted, and never shown again"
          autoComplete="new-password"
          value={typed.password}
          onChange={(event) => onTyped({ ...typed, password: event.currentTarget.value })}
        />
      )}
    </>
  );
}
