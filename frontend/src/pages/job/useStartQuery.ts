/** What the API says of a query that is to be started beside a job's own, while it is typed. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { diffQuery } from '../../api/queries';
import type { Diagnostics, Job } from '../../api/types';
import { squigglesOf } from '../../editor/offsets';
import { furtherQueries } from './furtherQueries';
import { startOf, verdictOn, wrongIn } from './startQuery';

const TYPED_MS = 350;

export function useStartQuery(job: Job, name: string, query: string) {
  const change = useMemo(() => startOf(name, query), [name, query]);
  const [seen] = useDebouncedValue(change, TYPED_MS);
  const look = useQuery({ ...diffQuery(job.id, job.version, seen), enabled: name.trim() !== '', retry: false });
  const isTaken = furtherQueries(job).some((other) => other.name === name.trim());
  const isSeen = seen === change;
  const refusal = isSeen ? look.error : null;
  const { ofName, ofQuery, elsewhere } = useMemo(() => wrongIn(name, refusal), [name, refusal]);
  const squiggles = useMemo(() => squigglesOf(query, ofQuery), [query, ofQuery]);
  const isLooking = !isSeen || look.isFetching;
  const diagnostics: Diagnostics | undefined = isLooking ? undefined : verdictOn(look.isSuccess ? look.data : undefined, job, ofQuery);
  return {
    change,
    wrongName: isTaken ? 'there is a query of this name' : ofName,
    squiggles,
    diagnostics,
    isLooking,
    isRight: diagnostics?.valid === true && !isTaken,
    /** Null where its fields say all of it. */
    refusal: elsewhere ? refusal : null,
  };
}
