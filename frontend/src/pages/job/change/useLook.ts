/** What the API says of what is typed: what is wrong with it, or what it would change. */
import { useDebouncedValue } from '@mantine/hooks';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Problem } from '../../../api/problem';
import { diffOf } from '../../../api/queries';
import type { Diagnostics, Diff, Job, JobChange, Place } from '../../../api/types';
import { changeOf, isEmpty, type Typed } from './form';

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

/** What a change would do; null where it is refused for these mistakes. */
interface Judged {
  diff: Diff | null;
  places: Place[];
}

/**
 * A change is judged as it would be applied: by the streams as the job has them, which may be registered otherwise by
 * now. A mistake in it is an answer like any other.
 */
const judgedQuery = (job: Job, change: JobChange) =>
  queryOptions({
    queryKey: ['jobs', job.id, 'judged', job.version, change],
    queryFn: async (): Promise<Judged> => {
      try {
        return { diff: await diffOf(job.id, change), places: [] };
      } catch (refusal) {
        if (!(refusal instanceof Problem) || refusal.status !== 422) throw refusal;
        return { diff: null, places: refusal.places.length > 0 ? refusal.places : [{ detail: refusal.message }] };
      }
    },
    staleTime: 10_000,
  });

const verdictOn = ({ diff, places }: Judged, { refresh_streams: isFresh }: JobChange): Diagnostics => ({
  valid: diff !== null,
  diagnostics: places,
  columns: [],
  summary: isFresh === true ? 'it fits the streams as they are registered now' : 'it fits the streams that the job has',
});

export function useLook(job: Job, { base, form }: Typed): Look {
  const [seen] = useDebouncedValue(form, TYPED_MS);
  const change = useMemo(() => changeOf(base, seen), [base, seen]);
  const judged = useQuery({ ...judgedQuery(job, change), placeholderData: (before) => before });
  return {
    query: seen.query,
    change,
    diagnostics: judged.data && verdictOn(judged.data, change),
    diff: isEmpty(change) ? null : (judged.data?.diff ?? null),
    // One that is only asked for again stays good meanwhile: coming back to the window asks again, and what can be
    // applied must not slip away under the hand that does it.
    isLooking: seen !== form || judged.isPending || judged.isPlaceholderData,
    error: judged.error,
  };
}
