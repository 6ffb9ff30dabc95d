/** What of an answer the page shows. */
import type { QueryIn } from '../../api/types';

/** More rows than this are for a file. */
export const ROWS_MAX = 1_000;

/** An aggregate is over all rows that answer, and takes no limit. */
export const firstRows = (question: QueryIn): QueryIn =>
  question.aggregate || question.by
    ? question
    : { ...question, limit: Math.min(question.limit ?? ROWS_MAX, ROWS_MAX) };
