/** The ways to join three streams and more: what each would cost, which one runs, and what to write for another. */
import { Button, Table } from '@mantine/core';
import { formatBytes, formatRate, formatSeconds } from '../../format';
import classes from './Operators.module.css';
import type { Way, Ways } from './ways';
import { workWords } from './ways';

const HEADS = ['Memory', 'Comparisons', 'Looked at', 'Sent', 'Work', 'Takes'];

interface WaysTableProps {
  ways: Ways;
  /** Makes the join run in this way. */
  onTake: (way: Way) => void;
}

function WayRow({ way, onTake }: { way: Way; onTake: WaysTableProps['onTake'] }) {
  return (
    <Table.Tr aria-current={way.runs || undefined}>
      <Table.Td>
        {way.runs ? <b>{way.plan}, as it runs</b> : way.plan}
        {!way.runs && <div className={classes.words}>{way.setting}</div>}
        {!way.runs && (
          <Button
            size="compact-xs"
            variant="light"
            aria-label={`Take this way: ${way.plan}`}
            onClick={() => {
              onTake(way);
            }}
          >
            Take this way
          </Button>
        )}
      </Table.Td>
      <Table.Td className={classes.figure}>{formatBytes(way.memoryBytes)}</Table.Td>
      <Table.Td className={classes.figure}>{formatRate(way.comparisonsPerS)}</Table.Td>
      <Table.Td className={classes.figure}>{formatRate(way.lookedAtPerS)}</Table.Td>
      <Table.Td className={classes.figure}>{formatBytes(way.bytesPerS)}/s</Table.Td>
      <Table.Td className={classes.figure}>{workWords(way.workS)}</Table.Td>
      <Table.Td className={classes.figure}>
        {formatRate(way.ratePerS)}
        <div className={classes.words}>in {formatSeconds(way.responseS)}</div>
      </Table.Td>
    </Table.Tr>
  );
}

export function WaysTable({ ways, onTake }: WaysTableProps) {
  return (
    <section aria-label="Ways to join the streams">
      <p>{ways.advice}</p>
      <div className={classes.scrolled}>
        <Table mt="xs" miw={620}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Way, and what to write under operator</Table.Th>
              {HEADS.map((head) => (
                <Table.Th key={head} scope="col" className={classes.figure}>
                  {head}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {ways.found.map((way) => (
              <WayRow key={way.plan} way={way} onTake={onTake} />
            ))}
          </Table.Tbody>
        </Table>
      </div>
      <p className={classes.words}>
        work is that of one processor in a second of event time; takes is how many rows of all streams all slots can
        take, always busy and evenly; below it, the mean time until a row that waits for no other has met all, to which
        a batch adds its own length
      </p>
    </section>
  );
}
