/** The operators in rows: what each would cost, with a bar against the others, and what running jobs measure of it. */
import { Anchor, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { latestReportQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { formatBytes, formatDuration, formatRate, formatShort } from '../../format';
import { MEASURES, nextSorting, rangeOf, sorted, type Row, type Sorting } from './comparison';
import classes from './ComparisonTable.module.css';
import { formatMeasure } from './formatMeasure';
import { measuredOf } from './measured';
import { OperatorRow } from './OperatorRow';

interface ComparisonTableProps {
  query: string;
  rows: readonly Row[];
  /** The operator that is taken when nobody says one. */
  auto: string;
  arrivingPerS: number | null;
  running: { job: Job; by: string }[];
  isAsking: boolean;
}

const COLUMNS = MEASURES.length + 2;

export function ComparisonTable({ query, rows, auto, arrivingPerS, running, isAsking }: ComparisonTableProps) {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const ranges = new Map(MEASURES.map(({ key }) => [key, rangeOf(rows, key)]));
  return (
    <>
      <Table className={classes.table} aria-busy={isAsking}>
        <Table.Thead>
          <Table.Tr>
            <Head by="name" sorting={sorting} onSort={setSorting}>
              Operator
            </Head>
            {MEASURES.map(({ key, label }) => (
              <Head key={key} by={key} sorting={sorting} onSort={setSorting}>
                {label}
              </Head>
            ))}
            <Table.Th scope="col">Order</Table.Th>
          </Table.Tr>
        </Table.Thead>
        {sorted(rows, sorting).map((row) => (
          <Table.Tbody key={row.name}>
            <OperatorRow row={row} isAuto={row.name === auto} ranges={ranges} arrivingPerS={arrivingPerS} />
            {running
              .filter(({ by }) => by === row.name)
              .map(({ job }) => (
                <MeasuredRow key={job.id} job={job} isOther={job.query !== query} />
              ))}
          </Table.Tbody>
        ))}
      </Table>
      <p className={classes.foot}>
        Memory is that of stored tuples, replication the tuples received by units for each that came in, sent what
        routers send to units. Comparisons are those of a nested loop: an index needs a small part of them, and running
        jobs measure with theirs.
      </p>
    </>
  );
}

interface HeadProps {
  by: Sorting['by'];
  sorting: Sorting | null;
  onSort: (sorting: Sorting | null) => void;
  children: string;
}

function Head({ by, sorting, onSort, children }: HeadProps) {
  const isBy = sorting?.by === by;
  const direction = !isBy ? 'none' : sorting.down ? 'descending' : 'ascending';
  return (
    <Table.Th scope="col" aria-sort={direction} data-figure={by !== 'name'}>
      <button type="button" className={classes.sort} onClick={() => onSort(nextSorting(sorting, by))}>
        {children}
        <span aria-hidden="true" className={classes.arrow}>
          {isBy ? (sorting.down ? '↓' : '↑') : '↕'}
        </span>
      </button>
    </Table.Th>
  );
}

function MeasuredRow({ job, isOther }: { job: Job; isOther: boolean }) {
  const { data } = useQuery(latestReportQuery(job.id));
  const measured = data ? measuredOf(data) : undefined;
  return (
    <Table.Tr className={classes.measured}>
      <Table.Th scope="row" className={classes.operator}>
        <span>
          measured by{' '}
          <Anchor component={Link} to={`/jobs/${job.id}`} fz="xs" underline="always">
            {job.name}
          </Anchor>
        </span>
        <span className={classes.words}>
          {formatRate(measured?.tuplesPerS)} in, a batch in {formatDuration(measured?.batchMs)}
          {isOther && '; of another query over these streams'}
        </span>
      </Table.Th>
      <Table.Td className={classes.figure}>{formatBytes(measured?.stateBytes)}</Table.Td>
      <Table.Td className={classes.figure}>{formatMeasure('replication', measured?.replication ?? null)}</Table.Td>
      <Table.Td className={classes.figure}>
        {formatMeasure('comparisonsPerS', measured?.comparisonsPerS ?? null)}
        <span className={classes.words}>{formatShort(measured?.comparisonsPerTuple)} a tuple</span>
      </Table.Td>
      <Table.Td colSpan={COLUMNS - 4} />
    </Table.Tr>
  );
}
