/** The operators side by side: what each would cost, and which one is to run. */
import { Radio, Table } from '@mantine/core';
import { formatBytes, formatCount, formatRate } from '../../format';
import classes from './Operators.module.css';
import type { Growth, Option } from './plan';

interface OperatorsProps {
  options: Option[];
  /** The one that `auto` stands for. */
  runs: string;
  chosen: string;
  /** Costs of trees and rings are shown above. */
  hasWays: boolean;
  onChoose: (operator: string) => void;
}

export function Operators({ options, runs, chosen, hasWays, onChoose }: OperatorsProps) {
  return (
    <Radio.Group
      value={chosen}
      onChange={onChoose}
      label="Operator to run"
      description="Comparisons are those of a nested loop; an index needs a small part of them. Useful slots: with twice as many, each slot does less than half of what one alone does."
    >
      <div className={classes.scrolled}>
        <Table mt="xs" miw={520}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Operator</Table.Th>
              <Table.Th scope="col" className={classes.figure}>
                Memory
              </Table.Th>
              <Table.Th scope="col" className={classes.figure}>
                Replication
              </Table.Th>
              <Table.Th scope="col" className={classes.figure}>
                Comparisons
              </Table.Th>
              <Table.Th scope="col" className={classes.figure}>
                Sent
              </Table.Th>
              <Table.Th scope="col" className={classes.figure}>
                To one unit
              </Table.Th>
              <Table.Th scope="col" className={classes.figure}>
                Useful slots
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            <Table.Tr>
              <Table.Td>
                <Radio size="xs" value="auto" label="auto" />
              </Table.Td>
              <Table.Td colSpan={6} className={classes.words}>
                {chosen === 'auto' ? `takes ${runs}` : 'takes the one that fits the query'}
              </Table.Td>
            </Table.Tr>
            {options.map((option) => (
              <OptionRow key={option.name} option={option} hasWays={hasWays} />
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </Radio.Group>
  );
}

function slotsWords(growth: Growth | null): string {
  if (growth === null) return '-';
  return growth.slots === null ? 'over 4,096' : formatCount(growth.slots);
}

function OptionRow({ option, hasWays }: { option: Option; hasWays: boolean }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Radio size="xs" value={option.name} label={option.name} disabled={option.refusal !== null} />
      </Table.Td>
      {option.refusal !== null || option.memoryBytes === null ? (
        <Table.Td colSpan={6} className={classes.words}>
          {option.refusal ??
            option.reading ??
            (hasWays ? 'can run it; what order costs what is above' : 'can run it; its costs are not known before')}
        </Table.Td>
      ) : (
        <>
          <Table.Td className={classes.figure}>{formatBytes(option.memoryBytes)}</Table.Td>
          <Table.Td className={classes.figure}>{option.replication?.toFixed(2)}</Table.Td>
          <Table.Td className={classes.figure}>{formatRate(option.comparisonsPerS)}</Table.Td>
          <Table.Td className={classes.figure}>
            {formatBytes(option.bytesPerS)}
            {option.bytesPerS !== null && '/s'}
          </Table.Td>
          <Table.Td className={classes.figure}>
            {formatBytes(option.busiestBytesPerS)}
            {option.busiestBytesPerS !== null && '/s'}
          </Table.Td>
          <Table.Td className={classes.figure}>{slotsWords(option.growth)}</Table.Td>
        </>
      )}
    </Table.Tr>
  );
}
