/** A query that is to be started beside a job's own, and what is wrong with it. */
import { asProblem } from '../../api/problem';
import type { JobChange, Place } from '../../api/types';

export const startOf = (name: string, query: string): JobChange => ({ queries: { [name.trim()]: { query } } });

interface Wrong {
  ofName: string | undefined;
  ofQuery: Place[];
  /** The refusal says something that neither field can show. */
  elsewhere: boolean;
}

/** @param refusal null for none. */
export function wrongIn(name: string, refusal: unknown): Wrong {
  if (refusal === null) return { ofName: undefined, ofQuery: [], elsewhere: false };
  const at = `/queries/${name.trim()}`;
  const { places } = asProblem(refusal);
  const ofName = places.find(({ pointer }) => pointer === at)?.detail;
  const ofQuery = places.filter(({ pointer }) => pointer === `${at}/query`);
  return { ofName, ofQuery, elsewhere: ofQuery.length + (ofName === undefined ? 0 : 1) < Math.max(1, places.length) };
}
