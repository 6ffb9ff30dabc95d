/** How many rows are missing, by stream and reason. */
import { Button, Table } from '@mantine/core';
import type { RejectedFilter } from '../../../api/queries';
import type { RejectedCount } from '../../../api/types';
import { formatCount } from '../../../format';
import classes from './RejectedPanel.module.css';

interface CountsProps {
  counts: RejectedCount[];
  chosen: RejectedFilter;
  onChoose: (filter: RejectedFilter) => void;
}

export function Counts({ counts, chosen, onChoose }: CountsProps) {
  return (
    <Table className={classes.counts} aria-label="Rejected rows by stream and reason">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Stream</Table.Th>
          <Table.Th scope="col">Reason</Table.Th>
          <Table.Th scope="col">Meaning</Table.Th>
          <Table.Th scope="col" className={classes.number}>
            Rows
          </Table.Th>
          <Table.Th scope="col" className={classes.number}>
            Kept
          </Table.Th>
          <Table.Th scope="col" className={classes.number}>
            Show
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {counts.map(({ stream, reason, rows, kept, meaning }) => {
          const isChosen = chosen.stream === stream && chosen.reason === reason;
          return (
            <Table.Tr key={`${reason} ${stream}`}>
              <Table.Td>{stream}</Table.Td>
              <Table.Td>{reason}</Table.Td>
              <Table.Td className={classes.muted}>{meaning}</Table.Td>
              <Table.Td className={classes.number}>{formatCount(rows)}</Table.Td>
              <Table.Td className={classes.number}>{formatCount(kept)}</Table.Td>
              <Table.Td className={classes.number}>
                {kept > 0 ? (
                  <Button
                    size="compact-xs"
                    variant="default"
                    aria-pressed={isChosen}
                    aria-label={isChosen ? 'All rows' : `Only these: ${reason} rows of ${stream}`}
                    onClick={() => onChoose(isChosen ? {} : { stream, reason })}
                  >
                    {isChosen ? 'All' : 'Only these'}
                  </Button>
                ) : (
                  <span className={classes.muted}>counted only</span>
                )}
              </Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}
