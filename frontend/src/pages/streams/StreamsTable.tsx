/** Streams in rows: where each comes from, and how late its rows may be. */
import { Anchor, Table } from '@mantine/core';
import { Link } from 'react-router';
import type { Stream } from '../../api/types';
import { Ago } from '../../components/Ago';
import { streamPath } from './address';
import { delayOf, placeOf, sourceOf, timeOf } from './source';

export function StreamsTable({ streams }: { streams: Stream[] }) {
  return (
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
        {streams.map((stream) => (
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
  );
}
