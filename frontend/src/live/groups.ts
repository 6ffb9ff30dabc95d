/** Groups that change as a table that updates in place: a row replaces that of its group, or ends it. */
import type { Column } from '../api/types';
import type { TailRow } from './tail';

const OPERATION = 'op';

export class GroupTable {
  private readonly rows = new Map<string, TailRow>();
  /** Groups that have changed since the table began or last forgot, of which older values say nothing. */
  private readonly changed = new Set<string>();
  private readonly places: number[];
  private readonly operation: number;
  private readonly most: number;

  /**
   * @param groups the columns that tell groups apart.
   * @param most so many groups are kept; the first ones go.
   */
  constructor(columns: Column[], groups: string[], most: number) {
    this.places = groups.map((name) => columns.findIndex((column) => column.name === name));
    this.operation = columns.findIndex((column) => column.name === OPERATION);
    this.most = most;
  }

  /** Changes were left out: all groups are to be filled in. */
  forget(): void {
    this.changed.clear();
  }

  /** What all groups were when the table began or last forgot, which may come late. */
  fill(rows: TailRow[]): void {
    const filled = new Map(rows.map((row) => [this.keyOf(row), row]));
    for (const key of [...this.rows.keys()]) if (!filled.has(key) && !this.changed.has(key)) this.rows.delete(key);
    for (const [key, row] of filled) if (!this.changed.has(key)) this.put(row);
  }

  /** Changes, oldest first. */
  take(rows: TailRow[]): void {
    for (const row of rows) {
      const key = this.keyOf(row);
      this.changed.add(key);
      if (row.cells[this.operation] === 'delete') this.rows.delete(key);
      else this.put(row);
    }
  }

  list(): TailRow[] {
    return [...this.rows.values()];
  }

  private put(row: TailRow): void {
    this.rows.set(this.keyOf(row), row);
    if (this.rows.size <= this.most) return;
    const [first] = this.rows.keys();
    if (first !== undefined) this.rows.delete(first);
  }

  private keyOf(row: TailRow): string {
    return JSON.stringify(this.places.map((place) => row.cells[place]));
  }
}
