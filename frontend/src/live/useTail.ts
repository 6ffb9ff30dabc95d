/** A job's results as they come. */
import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { live } from './shared';
import { Tail, type TailView } from './tail';

/**
 * @param where a condition over the results' columns; null for all of them.
 */
export function useTail(job: string, where: string | null): { tail: Tail; view: TailView } {
  const { tail, asked } = useMemo(
    () => ({ tail: new Tail((draw) => requestAnimationFrame(draw)), asked: { job, where } }),
    [job, where],
  );
  useEffect(() => live.subscribe(asked, tail), [asked, tail]);
  return { tail, view: useSyncExternalStore(tail.watch, tail.getView) };
}
