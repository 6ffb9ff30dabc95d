/**
 * Where each unit stands: cells of a matrix by row and column, units of a biclique in a row for each side; those of
 * each stage by themselves.
 */

/** What is known of a unit's place. */
export interface Labelled {
  label: string;
}

export interface UnitRow<One extends Labelled> {
  label: string;
  /** It is a row of a matrix, so that its units stand in columns. */
  isOfMatrix: boolean;
  units: One[];
}

const CELL = /^(?:\d+\.)?cell (\d+),(\d+)$/;
const SIDE = /^(?:\d+\.)?([A-Z]+)\d+$/;
const STAGE = /^(\d+)\./;

const placeOf = (unit: Labelled): string => {
  const cell = CELL.exec(unit.label);
  if (cell !== null) return `row ${cell[1] ?? ''}`;
  const side = SIDE.exec(unit.label)?.[1];
  return side === undefined ? 'units' : `units of ${side}`;
};

const rowOf = (unit: Labelled): string => {
  const stage = STAGE.exec(unit.label)?.[1];
  return stage === undefined ? placeOf(unit) : `stage ${stage}, ${placeOf(unit)}`;
};

/** In the order of the units' numbers. */
export function unitGrid<One extends Labelled>(units: One[]): UnitRow<One>[] {
  const rows = new Map<string, One[]>();
  for (const unit of units) {
    const label = rowOf(unit);
    const row = rows.get(label);
    if (row === undefined) rows.set(label, [unit]);
    else row.push(unit);
  }
  return [...rows].map(([label, units]) => ({ label, units, isOfMatrix: CELL.test(units[0]?.label ?? '') }));
}
