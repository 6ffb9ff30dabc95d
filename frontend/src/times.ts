/** Times for people, in the zone that they chose: theirs or UTC. Every time on the screen passes through here. */
import { useSyncExternalStore } from 'react';

export type Zone = 'local' | 'utc';

const KEPT_AS = 'streamjoin-zone';
const NONE = '–';

/** How times are written in one zone. */
export interface Times {
  zone: Zone;
  /** Such as 12:00:05, of seconds since 1970. */
  clock: (atS: number) => string;
  /** Such as 12:00. */
  minute: (atS: number) => string;
  /** Such as 2026-01-31. */
  date: (atS: number) => string;
  /** Such as 12:00:05.123, of milliseconds since 1970. */
  clockMs: (atMs: number) => string;
  /** With its date and to the second, of a time that the API gave; in UTC it ends in Z. */
  time: (at: string | null) => string;
  /** The same of microseconds since 1970. */
  timeOfUs: (atUs: number | null) => string;
}

/** The least and the most that a Date can be. */
const DATE_MS_MAX = 8.64e15;

export function timesOf(zone: Zone): Times {
  const timeZone = zone === 'utc' ? 'UTC' : undefined;
  const hour = { hour: '2-digit', minute: '2-digit' } as const;
  const written = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('sv-SE', { ...options, timeZone });
  const minute = written(hour);
  const clock = written({ ...hour, second: '2-digit' });
  const clockMs = written({ ...hour, second: '2-digit', fractionalSecondDigits: 3 });
  const date = written({ dateStyle: 'short' });
  const whole = written({ dateStyle: 'short', timeStyle: 'medium' });
  const ending = zone === 'utc' ? 'Z' : '';
  const ofMs = (atMs: number, otherwise: string) =>
    Math.abs(atMs) <= DATE_MS_MAX ? `${whole.format(atMs)}${ending}` : otherwise;
  return {
    zone,
    clock: (atS) => clock.format(atS * 1000),
    minute: (atS) => minute.format(atS * 1000),
    date: (atS) => date.format(atS * 1000),
    clockMs: (atMs) => clockMs.format(atMs).replace(',', '.'),
    time: (at) => (at === null ? NONE : ofMs(Date.parse(at), at)),
    timeOfUs: (atUs) => (atUs === null ? NONE : ofMs(atUs / 1000, `${String(atUs)} µs`)),
  };
}

const read = (): Zone => {
  try {
    return localStorage.getItem(KEPT_AS) === 'utc' ? 'utc' : 'local';
  } catch {
    // A browser that keeps nothing for this page.
    return 'local';
  }
};

let current = timesOf(read());
const watchers = new Set<() => void>();

/** Show all times in this zone from now on, also the next time somebody comes. */
export function chooseZone(zone: Zone): void {
  if (zone === current.zone) return;
  current = timesOf(zone);
  try {
    localStorage.setItem(KEPT_AS, zone);
  } catch {
    // It holds until the page is left.
  }
  for (const watcher of watchers) watcher();
}

const watch = (watcher: () => void): (() => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

export const useTimes = (): Times => useSyncExternalStore(watch, () => current);
