/** A question asked once: for the page, or its answer as a file. */
import { answered, api } from '../api/client';
import type { Answer, QueryIn } from '../api/types';
import { cutOf, type Cut } from './cut';
import type { FileFormat } from './formats';

export async function ask(question: QueryIn): Promise<Answer> {
  const answer = await answered(api.POST('/api/v1/queries', { body: { ...question, format: 'json' } }));
  // The route has other formats for who asks for them.
  if (typeof answer === 'string') throw new Error('the answer is no JSON');
  return answer;
}

export interface AnswerFile {
  blob: Blob;
  /** Null where it is the whole answer. */
  cut: Cut | null;
}

/** All that the question asks for; its limit, if it has one, is part of it. */
export async function exported(question: QueryIn, format: FileFormat): Promise<AnswerFile> {
  const blob = await answered(api.POST('/api/v1/queries', { body: { ...question, format }, parseAs: 'blob' }));
  return { blob, cut: await cutOf(blob, format) };
}
