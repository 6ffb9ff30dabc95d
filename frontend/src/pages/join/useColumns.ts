/** The columns of the streams that a query names, for completion; each stream is looked at once. */
import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { sampleQuery } from '../../api/queries';
import { streamsOf } from './streamsOf';

/** Names of columns by stream; none, for streams that were not looked at. */
export function useColumns(query: string, names: string[]): Record<string, string[]> {
  const named = streamsOf(query, names);
  const columns = useQueries({
    queries: named.map((name) => ({ ...sampleQuery(name), staleTime: Infinity })),
    combine: (samples) => samples.map(({ data }) => data?.columns.map((column) => column.name) ?? []),
  });
  const found: Record<string, string[]> = Object.fromEntries(
    names.map((name) => [name, columns[named.indexOf(name)] ?? []]),
  );
  const key = JSON.stringify(found);
  // The editor takes a new object for news.
  return useMemo(() => JSON.parse(key) as Record<string, string[]>, [key]);
}
