/** The columns of the streams and relations that a query names, for completion; each is looked at once. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { relationSampleQuery, relationsQuery, sampleQuery } from '../../api/queries';
import { streamsOf } from './streamsOf';

const columnsIn = (samples: { data?: { columns: { name: string }[] } | undefined }[]): string[][] =>
  samples.map(({ data }) => data?.columns.map((column) => column.name) ?? []);

/** Names of columns by stream and by relation; none, for those that were not looked at. */
export function useColumns(query: string, streams: string[]): Record<string, string[]> {
  const relations = useQuery(relationsQuery).data?.data.map(({ name }) => name) ?? [];
  const read = streamsOf(query, streams);
  const joined = streamsOf(query, relations);
  const ofStreams = useQueries({
    queries: read.map((name) => ({ ...sampleQuery(name), staleTime: Infinity })),
    combine: columnsIn,
  });
  const ofRelations = useQueries({
    queries: joined.map((name) => ({ ...relationSampleQuery(name), staleTime: Infinity })),
    combine: columnsIn,
  });
  const found: Record<string, string[]> = Object.fromEntries([
    ...relations.map((name) => [name, ofRelations[joined.indexOf(name)] ?? []] as const),
    ...streams.map((name) => [name, ofStreams[read.indexOf(name)] ?? []] as const),
  ]);
  const key = JSON.stringify(found);
  // The editor takes a new object for news.
  return useMemo(() => JSON.parse(key) as Record<string, string[]>, [key]);
}
