/** The newest rows of a job's results, bounded; a paused tail keeps what is shown and lets the rest wait. */
import type { Column, Completion, News, ProblemDocument, Progress } from '../api/types';
import type { Listener } from './socket';

export const ROWS_MAX = 2_000;

export interface TailRow {
  /** Counts up over the whole tail. */
  number: number;
  snapshot: string;
  cells: unknown[];
}

/** What is drawn; a new object for each change. */
export interface TailView {
  columns: Column[];
  /** Newest first, `ROWS_MAX` at most. */
  rows: TailRow[];
  /** Rows that came, also those that are no longer here. */
  received: number;
  /** Rows that the server left out because this page was slow, in so many snapshots. */
  dropped: { rows: number; snapshots: number };
  /** Rows that came while paused. */
  waiting: number;
  isPaused: boolean;
  progress: Progress | null;
  problem: ProblemDocument | null;
  end: Completion['reason'] | null;
}

const EMPTY: TailView = {
  columns: [],
  rows: [],
  received: 0,
  dropped: { rows: 0, snapshots: 0 },
  waiting: 0,
  isPaused: false,
  progress: null,
  problem: null,
  end: null,
};

/**
 * Collects what a subscription gives, and shows it at most once a frame.
 *
 * @param schedule runs a function before the next paint.
 */
export class Tail implements Listener {
  private view = EMPTY;
  private newest: TailRow[] = [];
  private received = 0;
  private receivedWhenPaused = 0;
  private isScheduled = false;
  private readonly watchers = new Set<() => void>();
  private readonly schedule: (draw: () => void) => void;

  constructor(schedule: (draw: () => void) => void) {
    this.schedule = schedule;
  }

  readonly getView = (): TailView => this.view;

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  pause(isPaused: boolean): void {
    this.receivedWhenPaused = this.received;
    this.change({ isPaused, waiting: 0, ...(isPaused ? {} : { rows: this.newest }) });
  }

  clear(): void {
    this.newest = [];
    this.received = this.receivedWhenPaused = 0;
    this.change({ rows: [], received: 0, waiting: 0, dropped: EMPTY.dropped });
  }

  readonly onColumns = (columns: Column[]): void => this.change({ columns, problem: null, end: null });

  readonly onNews = (news: News): void => {
    const rows = news.rows.map((cells, place) => ({ number: this.received + place, snapshot: news.snapshot, cells }));
    this.received += rows.length;
    this.newest = [...rows.slice(-ROWS_MAX).reverse(), ...this.newest].slice(0, ROWS_MAX);
    const { dropped, isPaused } = this.view;
    this.change({
      received: this.received,
      dropped: { rows: dropped.rows + (news.gap?.rows ?? 0), snapshots: dropped.snapshots + news.dropped },
      ...(isPaused ? { waiting: this.received - this.receivedWhenPaused } : { rows: this.newest }),
    });
  };

  readonly onProgress = (progress: Progress): void => this.change({ progress });

  readonly onProblem = (problem: ProblemDocument): void => this.change({ problem });

  readonly onEnd = (end: Completion['reason']): void => this.change({ end });

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
