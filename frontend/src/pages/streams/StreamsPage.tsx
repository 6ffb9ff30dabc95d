/** The registered streams. */
import { Anchor, Button, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { streamsQuery } from '../../api/queries';
import { Ago } from '../../components/Ago';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { useMay } from '../../shell/useMay';
import { streamPath } from './address';
import { delayOf, placeOf, sourceOf, timeOf } from './source';

export function StreamsPage() {
  const streams = useQuery(streamsQuery);
  const mayRegister = useMay('operator');
  return (
    <>
      <PageTitle
        title="Streams"
        actions={
          mayRegister && (
            <Button component={Link} to="/streams/new">
              Register a stream
            </Button>
          )
        }
      />
      {streams.error !== null && <ProblemView error={streams.error} />}
      <Panel title="Registered streams" note={streams.data && formatCount(streams.data.data.length)} flush>
        {streams.data === undefined ? (
          streams.isPending && <Loading what="streams" />
        ) : streams.data.data.length === 0 ? (
          <Empty title="No stream yet">
            A stream says where rows come from and what they are. Register your own, or start a demo on the overview: it
            brings its own.
            {mayRegister && (
              <div>
                <Button component={Link} to="/streams/new" variant="default" mt="sm">
                  Register a stream
                </Button>
              </div>
            )}
          </Empty>
        ) : (
          <Table highlightOnHover miw={680}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th scope="col">Stream</Table.Th>
                <Table.Th scope="col">Source</Table.Th>
                <Table.Th scope="col">From</Table.Th>
                <Table.Th scope="col">Event time</Table.Th>
                <Table.Th scope="col">Allowed delay</Table.Th>
                <Table.Th scope="col">Registered</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {streams.data.data.map((stream) => (
                <Table.Tr key={stream.id}>
                  <Table.Td>
                    <Anchor component={Link} to={streamPath(stream)} fw={600} fz="sm">
                      {stream.name}
                    </Anchor>
                  </Table.Td>
                  <Table.Td>{sourceOf(stream)}</Table.Td>
                  <Table.Td>{placeOf(stream)}</Table.Td>
                  <Table.Td>{timeOf(stream)}</Table.Td>
                  <Table.Td>{delayOf(stream)}</Table.Td>
                  <Table.Td>
                    <Ago at={stream.created_at} />
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
