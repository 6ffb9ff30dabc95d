/**
 * The one websocket of the page, protocol streamjoin.v1; every live view is a subscription on it.
 *
 * It opens with the first subscription and closes after the last. A lost connection is opened again after a pause that
 * grows, and each subscription goes on after the last snapshot that came whole: nothing is lost or repeated. Nobody sees
 * a hidden page, so it sleeps: the connection is closed until the page is seen again.
 */
import type {
  ClientFrame,
  Column,
  Completion,
  News,
  ProblemDocument,
  Progress,
  ServerFrame,
  Subscription,
} from '../api/types';

export type SocketState = 'idle' | 'connecting' | 'open' | 'waiting' | 'signed-out';

export interface Listener {
  /**
   * Rows of these columns come from now on.
   *
   * @param groups of groups that change, the columns that tell them apart.
   * @param snapshot what comes begins after it; null at the very beginning.
   * @param results identifies the results; a job that began anew has new ones.
   */
  onColumns: (columns: Column[], groups: string[], snapshot: string | null, results: string | undefined) => void;
  onNews: (news: News) => void;
  onProgress: (progress: Progress) => void;
  onProblem: (problem: ProblemDocument) => void;
  /** Nothing more comes, or, after `resync` and `restarted`, there is a gap before what comes next. */
  onEnd: (reason: Completion['reason']) => void;
}

/** What of a WebSocket is used, so that tests can stand in for one. */
export interface Wire {
  send: (text: string) => void;
  close: () => void;
}

export interface WireEvents {
  onOpen: () => void;
  onText: (text: string) => void;
  onClose: (code: number) => void;
}

export type Connect = (events: WireEvents) => Wire;

interface Followed {
  asked: Subscription;
  listener: Listener;
  /** The snapshot to go on after. */
  position: string | null;
  /** Which results it is of. */
  results: string | undefined;
  /** What went wrong may be over in a moment. */
  mayRetry: boolean;
  /** How often it failed since it last went well. */
  failures: number;
  again: ReturnType<typeof setTimeout> | undefined;
}

const SIGNED_OUT = 4401;
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 10_000;
/** A page that moves from one view to the next does not close in between. */
const LINGER_MS = 3_000;
/** Without any frame for so many heartbeats the connection counts as lost. */
const HEARTBEATS_MISSED = 3;
const HEARTBEAT_S = 5;

/** These end a subscription for good, but for a failure that may pass; after others it is asked again. */
const FINAL: ReadonlySet<Completion['reason']> = new Set(['asked', 'answered', 'failed', 'deleted', 'too_slow']);

export const pauseMs = (attempts: number, random: number): number =>
  Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** attempts) * (0.5 + random / 2);

export class LiveSocket {
  private readonly connect: Connect;
  private readonly followed = new Map<string, Followed>();
  private readonly watchers = new Set<() => void>();
  private wire: Wire | null = null;
  private isGreeted = false;
  private isAsleep = false;
  private attempts = 0;
  private nextId = 1;
  private heartbeatS = HEARTBEAT_S;
  private pause: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private linger: ReturnType<typeof setTimeout> | undefined;
  private current: SocketState = 'idle';

  constructor(connect: Connect) {
    this.connect = connect;
  }

  /** Follow a job's results until the returned function is called. */
  subscribe(asked: Subscription, listener: Listener): () => void {
    const id = String(this.nextId++);
    const nowhere = { position: null, results: undefined };
    const followed: Followed = { asked, listener, ...nowhere, mayRetry: false, failures: 0, again: undefined };
    this.followed.set(id, followed);
    clearTimeout(this.linger);
    if (this.isGreeted) this.ask(id, followed);
    else this.open();
    return () => this.leave(id);
  }

  readonly state = (): SocketState => this.current;

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  /** Try again at once, such as after somebody signed in. */
  retry(): void {
    this.attempts = 0;
    if (this.current === 'waiting' || this.current === 'signed-out') this.open();
  }

  sleep(isAsleep: boolean): void {
    this.isAsleep = isAsleep;
    if (isAsleep) this.close();
    else if (this.followed.size > 0) this.open();
  }

  private leave(id: string): void {
    if (!this.followed.delete(id)) return;
    if (this.isGreeted) this.send({ type: 'complete', id });
    if (this.followed.size > 0) return;
    clearTimeout(this.linger);
    this.linger = setTimeout(() => this.followed.size === 0 && this.close(), LINGER_MS);
  }

  private open(): void {
    clearTimeout(this.pause);
    if (this.wire !== null || this.isAsleep) return;
    const wire = this.connect({
      onOpen: () => (this.wire === wire ? this.send({ type: 'connection_init' }) : wire.close()),
      onText: (text) => this.wire === wire && this.take(JSON.parse(text) as ServerFrame),
      onClose: (code) => this.wire === wire && this.lost(code),
    });
    this.wire = wire;
    this.become('connecting');
    this.hear();
  }

  private take(frame: ServerFrame): void {
    this.hear();
    if (frame.type === 'connection_ack') {
      this.heartbeatS = frame.payload.heartbeat_s;
      this.isGreeted = true;
      this.attempts = 0;
      this.become('open');
      for (const [id, followed] of this.followed) this.ask(id, followed);
      return;
    }
    if (frame.type === 'pong') return;
    const followed = this.followed.get(frame.id);
    if (followed === undefined) return;
    const { listener } = followed;
    switch (frame.type) {
      case 'schema':
        followed.position = frame.payload.snapshot;
        followed.results = frame.payload.results;
        followed.failures = 0;
        listener.onColumns(frame.payload.columns, frame.payload.groups ?? [], followed.position, followed.results);
        break;
      case 'next':
        if (!frame.payload.more) followed.position = frame.payload.snapshot;
        listener.onNews(frame.payload);
        break;
      case 'progress':
        followed.position = frame.payload.snapshot ?? followed.position;
        listener.onProgress(frame.payload);
        break;
      case 'error':
        followed.mayRetry = frame.payload.can_retry === true;
        listener.onProblem(frame.payload);
        break;
      case 'complete':
        this.completed(frame.id, followed, frame.payload.reason);
    }
  }

  private completed(id: string, followed: Followed, reason: Completion['reason']): void {
    if (reason === 'failed' && followed.mayRetry) {
      followed.mayRetry = false;
      const askAgain = () => this.isGreeted && this.followed.has(id) && this.ask(id, followed);
      followed.again = setTimeout(askAgain, pauseMs(followed.failures, Math.random()));
      followed.failures += 1;
      return;
    }
    if (FINAL.has(reason)) {
      this.followed.delete(id);
    } else if (reason !== 'closing') {
      followed.position = null;
      this.ask(id, followed);
    }
    followed.listener.onEnd(reason);
  }

  private ask(id: string, { asked, position, results, again }: Followed): void {
    clearTimeout(again);
    this.send({ type: 'subscribe', id, payload: position === null ? asked : { ...asked, from: position, results } });
  }

  private send(frame: ClientFrame): void {
    this.wire?.send(JSON.stringify(frame));
  }

  /** Something came, so the connection lives. */
  private hear(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.lost(0), this.heartbeatS * HEARTBEATS_MISSED * 1000);
  }

  private lost(code: number): void {
    this.drop();
    if (this.followed.size === 0) {
      this.become('idle');
    } else if (code === SIGNED_OUT) {
      this.become('signed-out');
    } else {
      this.become('waiting');
      this.pause = setTimeout(() => this.open(), pauseMs(this.attempts, Math.random()));
      this.attempts += 1;
    }
  }

  private close(): void {
    this.drop();
    this.become('idle');
  }

  private drop(): void {
    const wire = this.wire;
    const wasOpen = this.isGreeted;
    this.wire = null;
    this.isGreeted = false;
    clearTimeout(this.silence);
    clearTimeout(this.pause);
    // One that is still opening closes itself once it is open: to close it now would be an error in the console.
    if (wasOpen) wire?.close();
  }

  private become(state: SocketState): void {
    if (state === this.current) return;
    this.current = state;
    for (const watcher of this.watchers) watcher();
  }
}
