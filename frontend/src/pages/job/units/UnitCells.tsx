/** The cells of the units: made once for the units there are, and from then on only written into. */
import { memo, useLayoutEffect, useRef, type CSSProperties, type KeyboardEvent, type PointerEvent } from 'react';
import type { Unit } from '../../../api/figures';
import type { Measured } from './measures';
import { painterOf, placeOf, type Painter } from './paint';
import { unitGrid } from './unitGrid';
import classes from './UnitCells.module.css';

interface UnitCellsProps {
  /** In the order in which they are drawn, as of `unitGrid`. */
  units: Unit[];
  /** Small cells without names. */
  isDense: boolean;
  measured: Measured;
  format: (value: number | null) => string;
  place: number;
  /** The element that tells all of the unit that is looked at. */
  describedBy: string;
  /** Null: back to the one with the most. */
  onLook: (place: number | null) => void;
}

const idOf = (describedBy: string, place: number | string): string => `${describedBy}-unit-${String(place)}`;

export function UnitCells(props: UnitCellsProps) {
  const { units, isDense, measured, format, place, describedBy, onLook } = props;
  const list = useRef<HTMLDivElement>(null);
  const painter = useRef<{ layout: string; painter: Painter }>(null);
  const labels = units.map((unit) => unit.label).join('\n');
  const layout = `${labels}\n${String(isDense)}`;
  const cells = () => [...(list.current?.querySelectorAll<HTMLElement>('[data-place]') ?? [])];

  useLayoutEffect(() => {
    if (painter.current?.layout !== layout) painter.current = { layout, painter: painterOf(cells()) };
    const { values, most } = measured;
    painter.current.painter.paint({ values, most, format, place, isNamed: !isDense });
  });

  const onPointer = ({ target }: PointerEvent) => {
    const pointed = target instanceof Element ? target.closest<HTMLElement>('[data-place]') : null;
    if (pointed !== null) onLook(Number(pointed.dataset.place));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = event.key === 'Escape' ? null : placeOf(event.key, place, cells());
    if (next === null && event.key !== 'Escape') return;
    event.preventDefault();
    if (next !== null) cells()[next]?.scrollIntoView({ block: 'nearest' });
    onLook(next);
  };
  return (
    <div
      ref={list}
      className={classes.units}
      data-dense={isDense}
      role="listbox"
      aria-label="Units"
      aria-describedby={describedBy}
      aria-activedescendant={idOf(describedBy, place)}
      tabIndex={0}
      onPointerOver={onPointer}
      onPointerDown={onPointer}
      onPointerLeave={() => onLook(null)}
      onKeyDown={onKeyDown}
    >
      <Cells labels={labels} describedBy={describedBy} />
    </div>
  );
}

/** Not drawn again as long as the units are the same. */
const Cells = memo(function Cells({ labels, describedBy }: { labels: string; describedBy: string }) {
  const units = labels.split('\n').map((label, place) => ({ label, place }));
  return unitGrid(units).map((row) => (
    <div
      key={row.label}
      className={classes.row}
      data-matrix={row.isOfMatrix}
      style={{ '--columns': row.units.length } as CSSProperties}
      role="group"
      aria-label={row.label}
    >
      <span className={classes.label} aria-hidden="true">
        {row.label}
      </span>
      <div className={classes.cells} role="presentation">
        {row.units.map(({ label, place }) => (
          <div
            key={place}
            id={idOf(describedBy, place)}
            data-place={place}
            className={classes.cell}
            role="option"
            aria-selected={false}
          >
            <span className={classes.name}>{label}</span>
            <span className={classes.value}>–</span>
          </div>
        ))}
      </div>
    </div>
  ));
});
