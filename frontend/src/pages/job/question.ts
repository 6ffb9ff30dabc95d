/** The form of a one-time question, and the question it means. */
import type { QueryIn } from '../../api/types';

export interface AskForm {
  from: string;
  to: string;
  key: string;
  where: string;
  limit: number;
}

export const LIMIT_AT_FIRST = 200;

export const EMPTY_FORM: AskForm = { from: '', to: '', key: '', where: '', limit: LIMIT_AT_FIRST };

/** Fields that are left empty are not asked about. */
export function questionOf(job: string, form: AskForm): QueryIn {
  const question: QueryIn = { job, limit: form.limit };
  for (const field of ['from', 'to', 'key', 'where'] as const) {
    const text = form[field].trim();
    if (text !== '') question[field] = text;
  }
  return question;
}

/** For a file, which has all of the answer: the form's limit is of what the page shows. */
export const withoutLimit = (question: QueryIn): QueryIn => ({ ...question, limit: null });
