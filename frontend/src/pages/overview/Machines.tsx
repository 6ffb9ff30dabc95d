/** Where jobs run, on a platform of several machines. */
import { Table } from '@mantine/core';
import type { Machine } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Panel } from '../../components/Panel';
import { formatBytes, formatCount } from '../../format';

export function Machines({ machines }: { machines: readonly Machine[] }) {
  if (machines.length < 2) return null;
  const able = machines.filter((machine) => machine.takes_jobs).length;
  return (
    <Panel title="Machines" note={`${formatCount(able)} of ${formatCount(machines.length)} take jobs`} flush>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Machine</Table.Th>
            <Table.Th scope="col">Jobs</Table.Th>
            <Table.Th scope="col">Free memory</Table.Th>
            <Table.Th scope="col">State</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {machines.map((machine) => (
            <Table.Tr key={machine.name}>
              <Table.Th scope="row">{machine.name}</Table.Th>
              <Table.Td>{formatCount(machine.jobs)}</Table.Td>
              <Table.Td>{machine.takes_jobs ? formatBytes(machine.free_bytes) : '–'}</Table.Td>
              <Table.Td>
                {machine.takes_jobs ? (
                  'takes jobs'
                ) : (
                  <>
                    silent, heard of <Ago at={machine.seen_at} />
                  </>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}
