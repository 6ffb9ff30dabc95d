/** A job's results as they come. */
import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { live } from './shared';
import { ask } from '../results/ask';
import { ROWS_MAX, Tail, type TailView } from './tail';

/**
 * @param where a condition over the results' columns; null for all of them.
 */
export function useTail(job: string, where: string | null): { tail: Tail; view: TailView } {
  const { tail, asked } = useMemo(
    () => {
      const load = async (snapshot: string) =>
        (await ask({ job, where, as_of: snapshot, limit: ROWS_MAX, format: 'json', history: false })).rows;
      return { tail: new Tail((draw) => requestAnimationFrame(draw), load), asked: { job, where } };
    },
    [job, where],
  );
  useEffect(() => live.subscribe(asked, tail), [asked, tail]);
  return { tail, view: useSyncExternalStore(tail.watch, tail.getView) };
}
