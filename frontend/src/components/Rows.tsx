/** Rows of a stream or of results, as many as come: only those that are seen are drawn. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef, type CSSProperties } from 'react';
import type { Column } from '../api/types';
import { formatCell, kindOf, type Kind } from '../format';
import classes from './Rows.module.css';

const ROW_PX = 26;
const ROWS_AROUND = 10;
/** What a time to the microsecond takes, and most numbers, with the space around them. */
const TIME_CH = 31;
const NUMBER_CH = 14;

interface RowsProps {
  label: string;
  columns: Column[];
  rows: unknown[][];
  height: number;
}

export function Rows({ label, columns, rows, height }: RowsProps) {
  const scrolled = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scrolled.current,
    estimateSize: () => ROW_PX,
    overscan: ROWS_AROUND,
    initialRect: { width: 800, height },
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items[items.length - 1]?.end ?? 0);
  return (
    // It scrolls, so the keyboard must reach it.
    <div
      ref={scrolled}
      className={classes.scrolled}
      style={{ maxHeight: height }}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <table className={classes.rows} style={roomFor(columns)} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column, place) => (
              <th key={place} scope="col" data-kind={kindOf(column.type)}>
                {column.name} <span className={classes.type}>{column.type}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 && <Space height={above} />}
          {items.map(({ index }) => (
            <tr key={index} aria-rowindex={index + 2}>
              {columns.map((column, place) => (
                <td key={place} data-kind={kindOf(column.type)}>
                  {formatCell(rows[index]?.[place])}
                </td>
              ))}
            </tr>
          ))}
          {below > 0 && <Space height={below} />}
        </tbody>
      </table>
    </div>
  );
}

/** What texts leave to the others, and how many share the rest: a table is no wider than its place if that can be. */
export function roomFor(columns: Column[]): CSSProperties {
  const count = (kind: Kind) => columns.filter(({ type }) => kindOf(type) === kind).length;
  const whole = `${String(count('time') * TIME_CH + count('number') * NUMBER_CH)}ch`;
  return { '--whole': whole, '--texts': Math.max(1, count('text')) } as CSSProperties;
}

const Space = ({ height }: { height: number }) => (
  <tr aria-hidden="true">
    <td style={{ height, padding: 0, border: 0 }} />
  </tr>
);
