/** Rejected rows one by one. */
import { Button, Table } from '@mantine/core';
import { useState } from 'react';
import type { RejectedRow } from '../../../api/types';
import { useTimes } from '../../../times';
import classes from './RejectedPanel.module.css';
import { clipped, placeOf, textOf, visible } from './texts';

export function RejectedList({ rows }: { rows: RejectedRow[] }) {
  const times = useTimes();
  return (
    <Table className={classes.rows} aria-label="Rejected rows">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Stream</Table.Th>
          <Table.Th scope="col">Reason</Table.Th>
          <Table.Th scope="col" className={classes.place}>
            Place
          </Table.Th>
          <Table.Th scope="col">Read</Table.Th>
          <Table.Th scope="col" className={classes.why}>
            Why
          </Table.Th>
          <Table.Th scope="col" className={classes.text}>
            Text
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={row.id}>
            <Table.Td>{row.stream}</Table.Td>
            <Table.Td>{row.reason}</Table.Td>
            <Table.Td>{placeOf(row)}</Table.Td>
            <Table.Td>{times.time(row.at)}</Table.Td>
            <Table.Td>{visible(row.detail)}</Table.Td>
            <Table.Td>
              <Text text={textOf(row)} isCut={row.truncated} place={placeOf(row)} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Text({ text, isCut, place }: { text: string; isCut: boolean; place: string }) {
  const [isWhole, setWhole] = useState(false);
  const short = clipped(text);
  return (
    <>
      <code className={classes.code}>{isWhole ? text : (short ?? text)}</code>
      {isWhole && isCut && <span className={classes.muted}> The rest, after 64 KiB, is not kept.</span>}
      {short !== null && (
        <Button
          size="compact-xs"
          variant="subtle"
          aria-expanded={isWhole}
          aria-label={`${isWhole ? 'Show less' : 'Show all'} of the text at ${place}`}
          onClick={() => setWhole(!isWhole)}
        >
          {isWhole ? 'Show less' : 'Show all'}
        </Button>
      )}
    </>
  );
}
