/** A figure of each operator for each number of slots. */
import { Table } from '@mantine/core';
import classes from './FiguresBySlots.module.css';
import type { Line } from './scaling';

interface FiguresBySlotsProps {
  slots: readonly number[];
  lines: readonly Line[];
  format: (value: number | null) => string;
}

export function FiguresBySlots({ slots, lines, format }: FiguresBySlotsProps) {
  return (
    // It scrolls where it is narrow, so the keyboard must reach it.
    <div className={classes.scrolled} tabIndex={0} role="region" aria-label="Figures by slots">
      <Table className={classes.table}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Slots</Table.Th>
            {slots.map((one) => (
              <Table.Th key={one} scope="col">
                {one}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {lines.map(({ label, values }) => (
            <Table.Tr key={label}>
              <Table.Th scope="row">{label}</Table.Th>
              {values.map((value, place) => (
                <Table.Td key={slots[place]}>{format(value)}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
