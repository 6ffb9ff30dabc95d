/** The queries of a job: its own, and those beside it. */
import type { Job } from '../../api/types';

/** What stands for a job's own query. */
export const OWN = '';

export interface FurtherQuery {
  name: string;
  query: string;
  stopped: boolean;
}

export const furtherQueries = ({ queries }: Pick<Job, 'queries'>): FurtherQuery[] =>
  Object.entries(queries ?? {}).map(([name, { query, stopped }]) => ({ name, query, stopped: stopped ?? false }));

/**
 * What the results of a query are asked by.
 *
 * @param job its name or id.
 */
export const resultsOf = (job: string, of: string): string => (of === OWN ? job : `${job}:${of}`);
