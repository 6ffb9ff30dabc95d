/** The operators in rows: what each would cost, with a bar against the others, and what running jobs measure of it. */
import { Anchor, Badge, Table, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'react-router';
import { latestReportQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { CheckIcon } from '../../components/icons';
import { formatBytes, formatDuration, formatRate, formatShort } from '../../format';
import {
  hasFigures,
  MEASURES,
  nextSorting,
  rangeOf,
  sorted,
  type MeasureKey,
  type Row,
  type Sorting,
} from './comparison';
import classes from './ComparisonTable.module.css';
import { measuredOf } from './measured';
import { formatMeasure } from './formatMeasure';

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
            <Table.Tr>
              <Table.Th scope="row" className={classes.operator}>
                <span className={classes.name}>
                  {row.name}
                  {row.name === auto && <Badge size="xs">auto takes it</Badge>}
                </span>
                <span className={classes.words}>{row.described === '' ? row.system : row.described}</span>
              </Table.Th>
              {hasFigures(row) ? (
                MEASURES.map(({ key }) => (
                  <Figure
                    key={key}
                    of={key}
                    value={row.figures[key]}
                    best={ranges.get(key)?.best ?? null}
                    most={ranges.get(key)?.most ?? 0}
                    arrivingPerS={arrivingPerS}
                  />
                ))
              ) : (
                <Table.Td colSpan={MEASURES.length} className={classes.refusal}>
                  {row.refusal === null ? unknown(arrivingPerS) : `cannot run it like this: ${row.refusal}`}
                </Table.Td>
              )}
              <Table.Td className={classes.order}>
                <Order row={row} />
              </Table.Td>
            </Table.Tr>
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

const unknown = (arrivingPerS: number | null): string =>
  arrivingPerS === null
    ? 'can run it; its costs need the rates of the streams, which are not known before they flow'
    : 'can run it; no formula tells its costs';

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

interface FigureProps {
  of: MeasureKey;
  value: number | null;
  best: number | null;
  most: number;
  arrivingPerS: number | null;
}

function Figure({ of, value, best, most, arrivingPerS }: FigureProps) {
  const isBest = value !== null && value === best;
  const share = value === null || most === 0 ? 0 : value / most;
  return (
    <Table.Td className={classes.figure} data-best={isBest}>
      <span className={classes.value}>
        {isBest && (
          <>
            <CheckIcon />
            <VisuallyHidden>the least: </VisuallyHidden>
          </>
        )}
        {formatMeasure(of, value)}
      </span>
      <span className={classes.bar}>
        <span style={{ width: `${String(share * 100)}%` }} />
      </span>
      {of === 'comparisonsPerS' && value !== null && arrivingPerS !== null && (
        <span className={classes.words}>{formatShort(value / arrivingPerS)} a tuple</span>
      )}
    </Table.Td>
  );
}

function Order({ row }: { row: Row }): ReactNode {
  if (row.refusal !== null || row.orderRefusal === undefined) return '–';
  if (row.orderRefusal === null) return 'up to total';
  return (
    <>
      none<span className={classes.words}>{row.orderRefusal}</span>
    </>
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
