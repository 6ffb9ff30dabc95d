/** A query that is to be started beside a job's own, and what is wrong with it. */
import { asProblem } from '../../api/problem';
import type { Diagnostics, Diff, Job, JobChange, Place } from '../../api/types';

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

const ANEW = 'what the job stores is not all that this query needs; make a job of its own of this one';

/**
 * @param seen what it would change; undefined where it is refused.
 * @param ofQuery what is wrong with it.
 */
export function verdictOn(seen: Diff | undefined, { generation }: Pick<Job, 'generation'>, ofQuery: Place[]): Diagnostics {
  // The job would begin without its state, which nobody asks for who starts a query beside others.
  const beginsAnew = generation > 0 && seen?.starts_anew === true;
  return {
    valid: seen !== undefined && !beginsAnew,
    diagnostics: beginsAnew ? [{ detail: seen.changes.find(({ reason }) => reason)?.reason ?? ANEW }] : ofQuery,
    columns: [],
    summary: 'it fits what is stored',
  };
}
