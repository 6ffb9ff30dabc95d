/** What one operator would cost, or why that cannot be told. */
import { Badge, Table, VisuallyHidden } from '@mantine/core';
import type { ReactNode } from 'react';
import { CheckIcon } from '../../components/icons';
import { formatShort } from '../../format';
import { hasFigures, MEASURES, type MeasureKey, type Range, type Row } from './comparison';
import classes from './ComparisonTable.module.css';
import { formatMeasure } from './formatMeasure';

interface OperatorRowProps {
  row: Row;
  /** Whether it is taken when nobody says one. */
  isAuto: boolean;
  /** Of the figures of all operators. */
  ranges: ReadonlyMap<MeasureKey, Range>;
  arrivingPerS: number | null;
}

export function OperatorRow({ row, isAuto, ranges, arrivingPerS }: OperatorRowProps) {
  return (
    <Table.Tr>
      <Table.Th scope="row" className={classes.operator}>
        <span className={classes.name}>
          {row.name}
          {isAuto && <Badge size="xs">auto takes it</Badge>}
        </span>
        <span className={classes.words}>{row.described === '' ? row.system : row.described}</span>
      </Table.Th>
      {hasFigures(row) ? (
        MEASURES.map(({ key }) => (
          <Figure key={key} of={key} value={row.figures[key]} range={ranges.get(key)} arrivingPerS={arrivingPerS} />
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
  );
}

const unknown = (arrivingPerS: number | null): string =>
  arrivingPerS === null
    ? 'can run it; its costs need the rates of the streams, which are not known before they flow'
    : 'can run it; no formula tells its costs';

interface FigureProps {
  of: MeasureKey;
  value: number | null;
  range: Range | undefined;
  arrivingPerS: number | null;
}

function Figure({ of, value, range, arrivingPerS }: FigureProps) {
  const { best, most } = range ?? { best: null, most: 0 };
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
