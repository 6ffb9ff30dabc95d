/** An answer page by page. What was answered stays until something else is: a question that fails takes nothing away. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Problem } from '../../api/problem';
import type { Answer, QueryIn } from '../../api/types';
import { ask } from '../../results/ask';

export interface Pages {
  /** What the pages answer; the form may say something else by now. */
  question: QueryIn;
  /** From the first on; never empty. */
  answers: Answer[];
  /** The place of the page that is shown. */
  at: number;
}

/** The place of the shown page's first row in the whole answer, from 1. */
export const firstRowOf = ({ answers, at }: Pages): number =>
  answers.slice(0, at).reduce((rows, answer) => rows + answer.rows_given, 1);

/** Whether there is a page after the one that is shown. */
export const hasNext = ({ answers, at }: Pages): boolean => answers[at]?.cursor != null;

export function usePages() {
  const [pages, setPages] = useState<Pages | null>(null);
  const asking = useMutation({
    mutationFn: async ({ question, before }: { question: QueryIn; before: Answer[] }) => {
      const answer = await ask({ ...question, cursor: before.at(-1)?.cursor });
      // It began well and failed before its first row: that is no answer either.
      if (answer.error && answer.rows.length === 0) throw new Problem(answer.error);
      return answer;
    },
    onSuccess: (answer, { question, before }) =>
      setPages({ question, answers: [...before, answer], at: before.length }),
  });
  const turnTo = (at: number) => {
    if (pages === null || at < 0) return;
    if (at < pages.answers.length) setPages({ ...pages, at });
    else asking.mutate({ question: pages.question, before: pages.answers });
  };
  return {
    pages,
    error: asking.error,
    isAsking: asking.isPending,
    ask: (question: QueryIn) => asking.mutate({ question, before: [] }),
    turnTo,
  };
}
