/** What the API says of what is typed: first whether it is right, and if so, what it would change. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { diffQuery, validateQuery } from '../../../api/queries';
import type { Diagnostics, Diff, Job, JobChange } from '../../../api/types';
import { changeOf, draftOf, isEmpty, type Typed } from './form';

const TYPED_MS = 350;

export interface Look {
  /** The query that was looked at, in which mistakes have their places. */
  query: string;
  change: JobChange;
  diagnostics: Diagnostics | undefined;
  /** Null where there is nothing to compare; the one before while another is on its way. */
  diff: Diff | null;
  isLooking: boolean;
  error: Error | null;
}

/**
 * No answer yet to what is typed. One that is only asked for again stays good meanwhile: coming back to the window asks
 * again, and what can be applied must not slip away under the hand that does it.
 */
const isOpen = (asked: { isPending: boolean; isPlaceholderData: boolean }): boolean =>
  asked.isPending || asked.isPlaceholderData;

export function useLook(job: Job, { base, form }: Typed): Look {
  const [seen] = useDebouncedValue(form, TYPED_MS);
  const change = useMemo(() => changeOf(base, seen), [base, seen]);
  const draft = useMemo(() => draftOf(base, seen), [base, seen]);
  const isChanged = !isEmpty(change);
  const checked = useQuery({ ...validateQuery(draft), placeholderData: (before) => before });
  const isRight = checked.data?.valid === true && !isOpen(checked);
  const compared = useQuery({
    ...diffQuery(job.id, job.version, change),
    enabled: isChanged && isRight,
    placeholderData: (before) => before,
  });
  return {
    query: seen.query,
    change,
    diagnostics: checked.data,
    diff: isChanged && checked.data?.valid === true ? (compared.data ?? null) : null,
    isLooking: seen !== form || isOpen(checked) || (isChanged && isRight && isOpen(compared)),
    error: checked.error ?? compared.error,
  };
}
