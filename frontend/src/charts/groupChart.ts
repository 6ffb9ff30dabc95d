/** Groups that change as lines over event time: one a group, of those that change most. */
import type { Column } from '../api/types';
import type { TailRow } from '../live/tail';
import { valueAt, type ChartData, type Series } from './series';

/** More lines than these cannot be told apart. */
export const LINES_MAX = 10;

const NUMBERS = /^(u?int|float|decimal)/;

/** The columns that can be drawn: numbers that do not tell groups apart. */
export const drawable = (columns: Column[], groups: string[]): string[] =>
  columns.filter(({ name, type }) => NUMBERS.test(type) && !groups.includes(name)).map(({ name }) => name);

const written = (cell: unknown): string =>
  cell === null ? 'NULL' : typeof cell === 'string' ? cell : JSON.stringify(cell);

/**
 * One line for each of the busiest groups, to the end of the chart: a value holds until it changes. The end of a group
 * is a hole.
 *
 * @param changes what groups were and became, in any order.
 * @param shown the column that is drawn.
 */
export function groupChart(columns: Column[], groups: string[], changes: TailRow[], shown: string): ChartData {
  const place = (name: string) => columns.findIndex((column) => column.name === name);
  const [value, at, operation] = [place(shown), place('emit_time'), place('op')];
  const keys = groups.map(place);
  const lines = new Map<string, { label: string; line: Map<number, number | null> }>();
  for (const { cells } of changes) {
    const group = keys.map((key) => cells[key]);
    const atS = Date.parse(String(cells[at])) / 1000;
    if (Number.isNaN(atS)) continue;
    const known = cells[operation] === 'delete' || cells[value] === null ? null : Number(cells[value]);
    // Labels of different groups may be the same, such as those of NULL and of the text NULL.
    const key = JSON.stringify(group);
    const { label, line } = lines.get(key) ?? {
      label: group.map(written).join(', '),
      line: new Map<number, number | null>(),
    };
    line.set(atS, known !== null && Number.isFinite(known) ? known : null);
    lines.set(key, { label, line });
  }
  // Sorting is stable: of groups that are equally busy the first ones stay.
  const busiest = [...lines.values()].sort((one, other) => other.line.size - one.line.size).slice(0, LINES_MAX);
  const atS = [...new Set(busiest.flatMap(({ line }) => [...line.keys()]))].sort((one, other) => one - other);
  const series = busiest.map(({ label, line }): Series => {
    let isHole = false;
    const values = atS.map((at) => {
      const known = line.get(at);
      if (known !== undefined) isHole = known === null;
      // A hole does not end where another group changes.
      return isHole ? null : known;
    });
    return { label, values: [...values.slice(0, -1), valueAt({ label, values }, values.length - 1)] };
  });
  return { atS, series, restartsS: [] };
}
