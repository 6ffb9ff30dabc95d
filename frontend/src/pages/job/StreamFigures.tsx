/** The streams of a job side by side: how fast, how far, and what of each is missing from the results. */
import { Table } from '@mantine/core';
import type { Report } from '../../api/figures';
import type { Job } from '../../api/types';
import { Panel } from '../../components/Panel';
import { formatCount, formatDuration, formatRate, formatShort } from '../../format';
import { useTimes } from '../../times';
import type { Input } from './input';
import { figuresOf, missingReports } from './leftOut';
import classes from './StreamFigures.module.css';

interface StreamFiguresProps {
  job: Job;
  reports: Report[];
  input: Input;
  span: string;
}

export function StreamFigures({ job, reports, input, span }: StreamFiguresProps) {
  const isComing = input.kind === 'coming';
  const streams = figuresOf(job.streams, reports, job.phase === 'running' && isComing);
  const times = useTimes();
  const missing = missingReports(reports);
  return (
    <Panel
      title="Streams"
      note={
        <>
          counts are of the last {span}
          {missing > 0 && (
            <strong className={classes.some}>
              {formatCount(missing)} reports could not be written: more may be missing
            </strong>
          )}
        </>
      }
      flush
    >
      <div className={classes.scrolled} role="region" aria-label="Figures of streams" tabIndex={0}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Stream</Table.Th>
              {['In', 'Lag', 'Watermark', isComing ? 'Live' : 'Stored', 'Late', 'Shed', 'Unreadable', 'NULL keys'].map((head) => (
                <Table.Th key={head} scope="col" className={classes.figure}>
                  {head}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {streams.map((stream) => (
              <Table.Tr key={stream.name}>
                <Table.Th scope="row" className={classes.name}>
                  {stream.name}
                </Table.Th>
                <Table.Td className={classes.figure}>
                  {input.kind === 'finished' ? 'finished' : formatRate(stream.tuplesPerS)}
                </Table.Td>
                <Table.Td className={classes.figure}>{formatDuration(stream.lagMs)}</Table.Td>
                <Table.Td className={classes.figure} data-kind="time">
                  {times.timeOfUs(stream.markUs)}
                </Table.Td>
                <Table.Td className={classes.figure}>{formatShort(stream.live)}</Table.Td>
                <Missing count={stream.late} />
                <Missing count={stream.shed} />
                <Missing count={stream.unreadable} />
                <Table.Td className={classes.figure}>{formatCount(stream.nullKeys)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </Panel>
  );
}

/** A count that ought to be 0. */
const Missing = ({ count }: { count: number }) => (
  <Table.Td className={classes.figure} data-some={count > 0}>
    {formatCount(count)}
  </Table.Td>
);
