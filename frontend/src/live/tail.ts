/** The newest rows of a job's results, bounded; a paused tail keeps what is shown and lets the rest wait. */
import { asProblem, mayPass, Problem } from '../api/problem';
import type { Column, Completion, News, ProblemDocument, Progress } from '../api/types';
import { GroupTable } from './groups';
import { pauseMs, type Listener } from './socket';

export const ROWS_MAX = 2_000;
/** Changes of groups that a chart is drawn from. */
const CHANGES_MAX = 5_000;

export interface TailRow {
  /** Counts up over the whole tail. */
  number: number;
  snapshot: string;
  cells: unknown[];
}

/** What is drawn; a new object for each change. */
export interface TailView {
  columns: Column[];
  /** Of groups that change, the columns that tell them apart; empty where a row is final. */
  groups: string[];
  /** Newest first, or of groups that change each in its place; `ROWS_MAX` at most. */
  rows: TailRow[];
  /** The latest changes of groups that change, of which a chart is drawn; empty where a row is final. */
  changes: TailRow[];
  /** Rows that came, also those that are no longer here. */
  received: number;
  /** Rows that the server left out because this page was slow, in so many snapshots. */
  dropped: { rows: number; snapshots: number };
  /** Snapshots with more rows than a connection sends. */
  cut: number;
  /** Rows that came while paused. */
  waiting: number;
  isPaused: boolean;
  progress: Progress | null;
  problem: ProblemDocument | null;
  end: Completion['reason'] | null;
  /** Why some results are missing from the rows shown; stays until it is cleared or replaced. */
  gap: 'restarted' | 'resync' | null;
}

const EMPTY: TailView = {
  columns: [],
  groups: [],
  rows: [],
  changes: [],
  received: 0,
  dropped: { rows: 0, snapshots: 0 },
  cut: 0,
  waiting: 0,
  isPaused: false,
  progress: null,
  problem: null,
  end: null,
  gap: null,
};

const NO_PART = { received: 0, dropped: EMPTY.dropped };

const plus = (one: TailView['dropped'], other: TailView['dropped']): TailView['dropped'] => ({
  rows: one.rows + other.rows,
  snapshots: one.snapshots + other.snapshots,
});

const isGap = (end: Completion['reason']): end is 'restarted' | 'resync' => end === 'restarted' || end === 'resync';

const isSame = (before: Column[], after: Column[]): boolean =>
  before.length === after.length &&
  before.every(({ name, type }, place) => name === after[place]?.name && type === after[place].type);

/** What groups were as of a snapshot. */
export type Load = (snapshot: string) => Promise<unknown[][]>;

const NOTHING: Load = () => Promise.resolve([]);

/**
 * Collects what a subscription gives, and shows it at most once a frame.
 *
 * @param schedule runs a function before the next paint.
 * @param load the last values of groups that change, from which their table goes on.
 */
export class Tail implements Listener {
  private view = EMPTY;
  private newest: TailRow[] = [];
  private changes: TailRow[] = [];
  private received = 0;
  private receivedWhenPaused = 0;
  /** How much of the counts belongs to a snapshot that has not arrived in full yet. */
  private part = NO_PART;
  private isScheduled = false;
  private readonly watchers = new Set<() => void>();
  private readonly schedule: (draw: () => void) => void;
  private readonly load: Load;
  private table: GroupTable | null = null;
  /** Of groups that change, the snapshot as of which all are to be asked for; null where none was left out. */
  private unseen: string | null = null;
  private isFilling = false;
  /** How asking for them went since the columns came: failures in a row, and when the next question may be asked. */
  private asked = { failures: 0, notBeforeMs: 0 };
  /** Which results the rows are of. */
  private results: string | undefined;

  constructor(schedule: (draw: () => void) => void, load = NOTHING) {
    this.schedule = schedule;
    this.load = load;
  }

  readonly getView = (): TailView => this.view;

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  pause(isPaused: boolean): void {
    this.receivedWhenPaused = this.received;
    this.change({ isPaused, waiting: 0, ...(isPaused ? {} : this.shown()) });
  }

  private shown(): Pick<TailView, 'rows' | 'changes'> {
    return { rows: this.newest, changes: this.changes };
  }

  clear(): void {
    this.newest = [];
    this.changes = [];
    const { columns, groups } = this.view;
    if (this.table !== null) this.table = new GroupTable(columns, groups, ROWS_MAX);
    this.received = this.receivedWhenPaused = 0;
    this.part = NO_PART;
    this.unseen = null;
    this.change({ ...this.shown(), received: 0, waiting: 0, dropped: EMPTY.dropped, cut: 0, gap: null });
  }

  readonly onColumns = (
    columns: Column[],
    groups: string[] = [],
    snapshot: string | null = null,
    results: string | undefined = undefined,
  ): void => {
    const { columns: before, groups: groupsBefore, gap } = this.view;
    const isSameShape = isSame(before, columns) && String(groupsBefore) === String(groups);
    // Old rows would end up under the wrong headings, or mixed with rows of other results.
    if (results !== this.results || !isSameShape) {
      this.table = null;
      this.clear();
    }
    this.results = results;
    this.change({ columns, groups, problem: null, end: null, gap });
    this.takeBack();
    if (groups.length === 0) this.table = null;
    // Groups that are known stay until it is known what became of them.
    else this.table ??= new GroupTable(columns, groups, ROWS_MAX);
    this.changes = [];
    this.unseen = snapshot;
    this.asked = { failures: 0, notBeforeMs: 0 };
    void this.fill();
  };

  /** A snapshot that did not come whole comes anew, or is dropped with those that were dropped before it. */
  private takeBack(): void {
    const { received, dropped } = this.part;
    if (this.table === null) this.newest = this.newest.slice(received);
    this.received -= received;
    this.part = NO_PART;
    const { rows, snapshots } = this.view.dropped;
    this.change({
      received: this.received,
      dropped: { rows: rows - dropped.rows, snapshots: snapshots - dropped.snapshots },
      ...this.waitingOrShown(),
    });
  }

  /** While paused, rows that are shown and come anew do not wait. */
  private waitingOrShown(): Partial<TailView> {
    return this.view.isPaused ? { waiting: Math.max(0, this.received - this.receivedWhenPaused) } : this.shown();
  }

  /** Ask for all groups, and once more if changes were left out meanwhile. */
  private async fill(): Promise<void> {
    if (this.isFilling) return;
    this.isFilling = true;
    while (this.table !== null && this.unseen !== null && performance.now() >= this.asked.notBeforeMs) {
      const { table, unseen: snapshot, asked } = this;
      this.unseen = null;
      table.forget();
      // Without them the table has the groups that it had, and those that change from now on.
      const found = await this.load(snapshot).catch(asProblem);
      if (table !== this.table) continue;
      if (!(found instanceof Problem)) {
        asked.failures = 0;
        this.put(table, snapshot, found);
      } else if (asked === this.asked) this.miss(snapshot, found);
    }
    this.isFilling = false;
  }

  /** They could not be had. What may pass is asked again with news or progress: no timer outlives the page. */
  private miss(snapshot: string, problem: Problem): void {
    if (mayPass(problem)) {
      this.asked.notBeforeMs = performance.now() + pauseMs(this.asked.failures, Math.random());
      this.asked.failures += 1;
      this.unseen ??= snapshot;
    } else {
      // The next question would have the same answer, until the page subscribes anew.
      this.asked.notBeforeMs = Infinity;
      this.change({ problem: { ...problem.document, title: 'Some groups are missing or have old values' } });
    }
  }

  private put(table: GroupTable, snapshot: string, found: unknown[][]): void {
    const rows = found.map((cells, place) => ({ number: place - found.length, snapshot, cells }));
    table.fill(rows);
    this.newest = table.list();
    this.changes = [...rows, ...this.changes].slice(-CHANGES_MAX);
    if (!this.view.isPaused) this.change(this.shown());
  }

  readonly onNews = (news: News): void => {
    const rows = news.rows.map((cells, place) => ({ number: this.received + place, snapshot: news.snapshot, cells }));
    this.received += rows.length;
    const dropped = { rows: news.gap?.rows ?? 0, snapshots: news.dropped };
    const { part } = this;
    this.part = news.more
      ? { received: part.received + rows.length, dropped: plus(part.dropped, dropped) }
      : NO_PART;
    if (this.table === null) {
      this.newest = [...rows.slice(-ROWS_MAX).reverse(), ...this.newest].slice(0, ROWS_MAX);
    } else {
      this.table.take(rows);
      this.newest = this.table.list();
      this.changes = [...this.changes, ...rows].slice(-CHANGES_MAX);
      if (news.dropped > 0 || news.truncated || this.unseen !== null) this.unseen = news.snapshot;
      if (!news.more) void this.fill();
    }
    this.change({
      received: this.received,
      dropped: plus(this.view.dropped, dropped),
      cut: this.view.cut + (news.truncated && !news.more ? 1 : 0),
      ...this.waitingOrShown(),
    });
  };

  readonly onProgress = (progress: Progress): void => {
    if (this.unseen !== null) {
      this.unseen = progress.snapshot ?? this.unseen;
      void this.fill();
    }
    this.change({ progress });
  };

  readonly onProblem = (problem: ProblemDocument): void => this.change({ problem });

  readonly onEnd = (end: Completion['reason']): void =>
    this.change({ end, ...(isGap(end) ? { gap: end } : {}) });

  private change(change: Partial<TailView>): void {
    this.view = { ...this.view, ...change };
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.schedule(() => {
      this.isScheduled = false;
      for (const watcher of this.watchers) watcher();
    });
  }
}
