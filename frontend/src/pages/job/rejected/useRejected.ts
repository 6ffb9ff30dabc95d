/** Rejected rows page by page; the first page is followed while the job runs, the others stay as they were. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { rejectedQuery, type RejectedFilter } from '../../../api/queries';

export function useRejected(id: string, isLive: boolean) {
  const [filter, setFilter] = useState<RejectedFilter>({});
  /** The last ids of the pages before this one. */
  const [before, setBefore] = useState<string[]>([]);
  const asked = useQuery(rejectedQuery(id, filter, before.at(-1) ?? null, isLive));
  // What was read last stays until something else is: a page that fails takes nothing away.
  const [found, setFound] = useState(asked.data);
  if (asked.data !== undefined && asked.data !== found) setFound(asked.data);
  const last = asked.data?.data.at(-1)?.id;
  const hasNext = asked.data?.has_more === true && last !== undefined;
  return {
    asked,
    found,
    filter,
    page: before.length + 1,
    hasNext,
    choose: (next: RejectedFilter) => {
      setFilter(next);
      setBefore([]);
    },
    turnNext: () => {
      if (hasNext) setBefore([...before, last]);
    },
    turnBack: () => setBefore(before.slice(0, -1)),
    toFirst: () => setBefore([]),
  };
}
