/** The registered relations. */
import { Anchor, Button, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { relationsQuery } from '../../api/queries';
import { Ago } from '../../components/Ago';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { useMay } from '../../shell/useMay';
import { placeOf, refreshOf, relationPath } from './address';

export function RelationsPage() {
  const relations = useQuery(relationsQuery);
  const mayRegister = useMay('operator');
  const register = mayRegister && (
    <Button component={Link} to="/relations/new">
      Register a relation
    </Button>
  );
  return (
    <>
      <PageTitle title="Relations" actions={register} />
      {relations.error !== null && <ProblemView error={relations.error} />}
      <Panel title="Registered relations" note={relations.data && formatCount(relations.data.data.length)} flush>
        {relations.data === undefined ? (
          relations.isPending && <Loading what="relations" />
        ) : relations.data.data.length === 0 ? (
          <Empty title="No relation yet">
            A relation is a finite table, of files or of a database, that streams are joined with.
          </Empty>
        ) : (
          <Table highlightOnHover miw={680}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th scope="col">Relation</Table.Th>
                <Table.Th scope="col">Source</Table.Th>
                <Table.Th scope="col">From</Table.Th>
                <Table.Th scope="col">Refreshed</Table.Th>
                <Table.Th scope="col">Registered</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {relations.data.data.map((relation) => (
                <Table.Tr key={relation.id}>
                  <Table.Td>
                    <Anchor component={Link} to={relationPath(relation)} fw={600} fz="sm">
                      {relation.name}
                    </Anchor>
                  </Table.Td>
                  <Table.Td>{String(relation.spec.source)}</Table.Td>
                  <Table.Td>{placeOf(relation)}</Table.Td>
                  <Table.Td>{refreshOf(relation)}</Table.Td>
                  <Table.Td>
                    <Ago at={relation.created_at} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </Panel>
    </>
  );
}
