import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ClientFrame, Column, News } from '../api/types';
import { LiveSocket, pauseMs, type Listener, type Wire, type WireEvents } from './socket';

class FakeWire implements Wire {
  readonly sent: ClientFrame[] = [];
  isClosed = false;
  readonly events: WireEvents;
  constructor(events: WireEvents) {
    this.events = events;
  }
  send = (text: string) => void this.sent.push(JSON.parse(text) as ClientFrame);
  close = () => void (this.isClosed = true);
  tell = (frame: object) => this.events.onText(JSON.stringify(frame));
  greet = () => {
    this.events.onOpen();
    this.tell({ type: 'connection_ack', payload: { server_version: '1', heartbeat_s: 5, limits: {} } });
  };
  next = (id: string, snapshot: string, more = false) =>
    this.tell({ type: 'next', id, payload: { snapshot, rows: [[1]], dropped: 0, more } });
}

let wires: FakeWire[] = [];
let news: News[] = [];
let ends: string[] = [];
const columns: Column[][] = [];

const wire = (place: number): FakeWire => {
  const found = wires[place];
  if (found === undefined) throw new Error(`there are ${String(wires.length)} wires`);
  return found;
};

const listener: Listener = {
  onColumns: (found) => columns.push(found),
  onNews: (found) => news.push(found),
  onProgress: () => undefined,
  onProblem: () => undefined,
  onEnd: (reason) => ends.push(reason),
};

const socket = () =>
  new LiveSocket((events) => {
    const made = new FakeWire(events);
    wires.push(made);
    return made;
  });

beforeEach(() => {
  vi.useFakeTimers();
  wires = [];
  news = [];
  ends = [];
});

afterEach(() => vi.useRealTimers());

test('many subscriptions share one connection, which opens with the first and closes after the last', () => {
  const live = socket();
  const leave = [live.subscribe({ job: 'a' }, listener), live.subscribe({ job: 'b' }, listener)];
  wire(0).greet();
  expect(wires).toHaveLength(1);
  expect(wire(0).sent.map((frame) => frame.type)).toEqual(['connection_init', 'subscribe', 'subscribe']);
  leave.forEach((one) => one());
  expect(wire(0).isClosed).toBe(false);
  vi.advanceTimersByTime(4_000);
  expect(wire(0).isClosed).toBe(true);
  expect(live.state()).toBe('idle');
});

test('after a lost connection it goes on after the last snapshot that came whole', () => {
  const live = socket();
  live.subscribe({ job: 'a', where: 'x > 1' }, listener);
  wire(0).greet();
  wire(0).next('1', '41.0');
  wire(0).next('1', '42.0', true);
  wire(0).events.onClose(1006);
  expect(live.state()).toBe('waiting');
  vi.advanceTimersByTime(1_000);
  wire(1).greet();
  expect(wire(1).sent[1]).toEqual({ type: 'subscribe', id: '1', payload: { job: 'a', where: 'x > 1', from: '41.0' } });
});

test('who goes on says which results the snapshot is of', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  wire(0).greet();
  const schema = { job: 'a', job_name: 'a', columns: [], groups: [], snapshot: '41.0', results: 'a-1' };
  wire(0).tell({ type: 'schema', id: '1', payload: schema });
  wire(0).events.onClose(1006);
  vi.advanceTimersByTime(1_000);
  wire(1).greet();
  expect(wire(1).sent[1]).toEqual({ type: 'subscribe', id: '1', payload: { job: 'a', from: '41.0', results: 'a-1' } });
});

test('what is no longer kept is told, and asked for anew from now on', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  wire(0).greet();
  wire(0).next('1', '41.0');
  wire(0).tell({ type: 'complete', id: '1', payload: { reason: 'resync' } });
  expect(ends).toEqual(['resync']);
  expect(wire(0).sent[2]).toEqual({ type: 'subscribe', id: '1', payload: { job: 'a' } });
});

test('a deleted job is not asked for again', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  wire(0).greet();
  wire(0).tell({ type: 'complete', id: '1', payload: { reason: 'deleted' } });
  wire(0).next('1', '43.0');
  expect(wire(0).sent).toHaveLength(2);
  expect(news).toHaveLength(0);
});

test('a failure that may pass is asked again, ever more seldom', () => {
  const live = socket();
  const leave = live.subscribe({ job: 'a' }, listener);
  wire(0).greet();
  const fail = (canRetry: boolean) => {
    wire(0).tell({ type: 'error', id: '1', payload: { title: 'the store is away', status: 503, can_retry: canRetry } });
    wire(0).tell({ type: 'complete', id: '1', payload: { reason: 'failed', end: null } });
  };
  const asked = () => wire(0).sent.filter((frame) => frame.type === 'subscribe').length;
  const hearing = (ms: number) => {
    for (let passed = 0; passed < ms; passed += 250) {
      wire(0).tell({ type: 'pong' });
      vi.advanceTimersByTime(250);
    }
  };
  for (let failures = 1; failures <= 4; failures += 1) {
    fail(true);
    expect(asked()).toBe(failures);
    hearing(500 * 2 ** (failures - 1));
    expect(asked()).toBe(failures + 1);
  }
  wire(0).tell({ type: 'schema', id: '1', payload: { columns: [], snapshot: '5.0' } });
  fail(true);
  hearing(500);
  expect(asked()).toBe(6);
  expect(wire(0).sent.at(-1)).toEqual({ type: 'subscribe', id: '1', payload: { job: 'a', from: '5.0' } });
  expect(ends).toEqual([]);
  fail(true);
  leave();
  hearing(1_000);
  expect(asked()).toBe(6);
});

test('a failure that stays is final', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  wire(0).greet();
  wire(0).tell({ type: 'error', id: '1', payload: { title: 'no such column', status: 422, can_retry: false } });
  wire(0).tell({ type: 'complete', id: '1', payload: { reason: 'failed', end: null } });
  vi.advanceTimersByTime(12_000);
  expect(wire(0).sent).toHaveLength(2);
  expect(ends).toEqual(['failed']);
});

test('a connection without a sign of life counts as lost', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  wire(0).greet();
  vi.advanceTimersByTime(14_000);
  expect(live.state()).toBe('open');
  vi.advanceTimersByTime(1_100);
  expect(live.state()).toBe('waiting');
  expect(wire(0).isClosed).toBe(true);
});

test('who is signed out is not tried again until told to', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  wire(0).events.onClose(4401);
  vi.advanceTimersByTime(60_000);
  expect(live.state()).toBe('signed-out');
  expect(wires).toHaveLength(1);
  live.retry();
  expect(wires).toHaveLength(2);
});

test('a hidden page closes the connection, and goes on where it was when it is seen again', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  wire(0).greet();
  wire(0).next('1', '41.0');
  live.sleep(true);
  expect(wire(0).isClosed).toBe(true);
  vi.advanceTimersByTime(600_000);
  expect(wires).toHaveLength(1);
  live.sleep(false);
  wire(1).greet();
  expect(wire(1).sent[1]).toMatchObject({ payload: { from: '41.0' } });
});

test('a connection that is given up while it opens closes itself once it is open', () => {
  const live = socket();
  live.subscribe({ job: 'a' }, listener);
  live.sleep(true);
  expect(wire(0).isClosed).toBe(false);
  wire(0).events.onOpen();
  expect(wire(0).isClosed).toBe(true);
});

test('pauses grow, up to ten seconds', () => {
  expect(pauseMs(0, 0)).toBe(250);
  expect(pauseMs(0, 1)).toBe(500);
  expect(pauseMs(3, 1)).toBe(4_000);
  expect(pauseMs(30, 1)).toBe(10_000);
});
