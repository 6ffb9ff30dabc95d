/** How long ago something was, kept true while it is looked at. */
import { useSyncExternalStore } from 'react';
import { formatSince } from '../format';
import { useTimes } from '../times';

const EVERY_MS = 1_000;
const watchers = new Set<() => void>();
let nowMs = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** One timer for all of them. */
function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  if (timer === undefined) {
    // It may be long since the last one was looked at.
    nowMs = Date.now();
    timer = setInterval(() => {
      nowMs = Date.now();
      for (const one of watchers) one();
    }, EVERY_MS);
  }
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Such as "5 s ago", or for what still is, "for 5 s". */
export function Ago({ at, isStill = false }: { at: string | null; isStill?: boolean }) {
  const times = useTimes();
  const now = useSyncExternalStore(watch, () => nowMs);
  if (at === null) return <>–</>;
  const since = formatSince(at, now);
  return (
    <time dateTime={at} title={times.time(at)}>
      {isStill ? `for ${since}` : `${since} ago`}
    </time>
  );
}
