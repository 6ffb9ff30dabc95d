/** Change a relation's entry, as long as nobody else did meanwhile. */
import { Button, Checkbox, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { answered, api } from '../../api/client';
import { asProblem } from '../../api/problem';
import { relationQuery, relationSampleQuery, relationsQuery } from '../../api/queries';
import type { Relation, RelationIn } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { changeRelation } from '../../recipes';
import { relationPath } from './address';
import { changedEntry, secretsOf, typedOf } from './entry';
import { EntryFields } from './EntryFields';

type RelationChange = Pick<RelationIn, 'spec' | 'secrets'>;

export function EditRelationPage() {
  const { name = '' } = useParams();
  const relation = useQuery(relationQuery(name));
  return (
    <>
      <PageTitle title={`Edit ${relation.data?.name ?? name}`} />
      {/* Not what was read some time ago: to change it would be refused. */}
      {relation.data !== undefined && relation.isFetchedAfterMount ? (
        <Edited key={relation.data.id} newest={relation.data} />
      ) : relation.isFetching ? (
        <Loading what="the relation" lines={6} />
      ) : (
        <ProblemView error={relation.error} onRetry={() => void relation.refetch()} />
      )}
    </>
  );
}

/** Changes the version that is given, and shows what has come of it. */
function useSave(relation: Relation, body: RelationChange) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () =>
      answered(
        api.PATCH('/api/v1/relations/{id}', {
          params: { path: { id: relation.id }, header: { 'if-match': `"${String(relation.version)}"` } },
          body,
        }),
      ),
    onSuccess: async (changed) => {
      client.setQueryData(relationQuery(changed.name).queryKey, changed);
      await client.invalidateQueries({ queryKey: relationsQuery.queryKey, exact: true });
      client.removeQueries({ queryKey: relationSampleQuery(changed.name).queryKey });
      await navigate(relationPath(changed));
    },
  });
}

/** What is typed is a change of the version that it began with, whatever is read meanwhile. */
function Edited({ newest }: { newest: Relation }) {
  const client = useQueryClient();
  const [relation, setRelation] = useState(newest);
  const [typed, setTyped] = useState(() => typedOf(relation.spec));
  const [forgets, setForgets] = useState(false);
  const spec = changedEntry(relation.spec, typed);
  const secrets = forgets ? {} : secretsOf(typed);
  const save = useSave(relation, { spec, secrets });
  const beginAnew = async () => {
    const theirs = await client.fetchQuery({ ...relationQuery(relation.name), staleTime: 0 });
    setRelation(theirs);
    setTyped(typedOf(theirs.spec));
    save.reset();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Panel title="Entry">
      <form noValidate onSubmit={submit}>
        <Stack maw={560}>
          <Text size="sm">
            Jobs that join it keep the entry as it was when they last changed, and take over what is saved here when they
            are changed themselves. Settings that are not asked for here stay.
          </Text>
          <EntryFields typed={typed} onTyped={setTyped} hasSecrets={relation.has_secrets} />
          {relation.has_secrets && (
            <Checkbox
              label="Forget the password"
              checked={forgets}
              onChange={(event) => setForgets(event.currentTarget.checked)}
            />
          )}
          {save.error !== null && <ProblemView error={save.error} />}
          <Group>
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
            {save.error !== null && asProblem(save.error).code === 'changed_meanwhile' && (
              <Button variant="default" onClick={() => void beginAnew()}>
                Begin with what is there now
              </Button>
            )}
            <CopyAs
              recipe={changeRelation(relation.name, relation.version, spec, secrets ?? undefined)}
              what="change this relation"
            />
            <Button component={Link} to={relationPath(relation)} variant="subtle" color="gray">
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
