/** What is asked of the API: each key is written once, here. Hidden tabs ask nothing: TanStack Query's default. */
import { infiniteQueryOptions, queryOptions, type QueryClient } from '@tanstack/react-query';
import { answered, api } from './client';
import { reportOf } from './figures';
import { joined, minutesToAsk, type History } from './history';
import { grown, type FollowedLog } from './log';
import { allPages, everyPages } from './pages';
import { asProblem } from './problem';
import type { Draft, JobChange, Me } from './types';

const LISTS_MS = 5_000;
const JOB_MS = 2_000;
/** While it starts: a step takes a second or less. */
const STARTING_MS = 500;
const LOST_MS = 10_000;
const METRICS_MS = 2_000;
const EVENTS_MS = 5_000;
const LOG_MS = 3_000;
/** A report that is older tells nothing of now. */
const LATEST_MINUTES = 0.2;

/** What of a job is asked again and again only while it runs, by the third part of its key. */
export const OF_RUNNING = ['snapshots', 'rejected', 'log', 'history'] as const;

const idOf = ({ id }: { id: string }): string => id;
const nameOf = ({ name }: { name: string }): string => name;

/** Who is signed in; null for nobody, which is an answer and no failure: a failure's retry would take the page away. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: async (): Promise<Me | null> => {
    try {
      return await answered(api.GET('/api/v1/users/me'));
    } catch (failure) {
      if (asProblem(failure).status === 401) return null;
      throw failure;
    }
  },
  staleTime: 60_000,
});

export const configQuery = queryOptions({
  queryKey: ['config'],
  queryFn: () => answered(api.GET('/api/v1/config')),
  staleTime: Infinity,
});

/** A folder that streams may read, page by page; the allowed folders themselves where it is null. */
export const filesQuery = (folder: string | null) =>
  infiniteQueryOptions({
    queryKey: ['files', folder],
    queryFn: ({ pageParam: starting_after }) =>
      answered(
        api.GET('/api/v1/files', {
          params: { query: { ...(folder !== null && { path: folder }), ...(starting_after !== null && { starting_after }) } },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.has_more ? (page.data.at(-1)?.name ?? null) : null),
    staleTime: 0,
  });

export const uploadsQuery = queryOptions({
  queryKey: ['uploads'],
  queryFn: () => allPages((query) => answered(api.GET('/api/v1/uploads', { params: { query } })), nameOf),
});

export const jobsQuery = queryOptions({
  queryKey: ['jobs'],
  queryFn: () => allPages((query) => answered(api.GET('/api/v1/jobs', { params: { query } })), idOf),
  refetchInterval: everyPages(LISTS_MS),
});

export const jobQuery = (id: string) =>
  queryOptions({
    queryKey: ['jobs', id],
    // One that hangs is no answer either: the page says so then.
    queryFn: () =>
      answered(api.GET('/api/v1/jobs/{id}', { params: { path: { id } }, signal: AbortSignal.timeout(LOST_MS) })),
    refetchInterval: ({ state }) => (state.data?.phase.endsWith('starting') ? STARTING_MS : JOB_MS),
  });

export const jobEventsQuery = (id: string) =>
  queryOptions({
    queryKey: ['jobs', id, 'events'],
    queryFn: () => answered(api.GET('/api/v1/jobs/{id}/events', { params: { path: { id }, query: { limit: 100 } } })),
    refetchInterval: EVENTS_MS,
  });

/** All that is known of what happened to a job, page by page. */
export const jobEventPagesQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['jobs', id, 'events', 'pages'],
    queryFn: ({ pageParam: starting_after }) => {
      const query = { limit: 100, ...(starting_after !== null && { starting_after }) };
      return answered(api.GET('/api/v1/jobs/{id}/events', { params: { path: { id }, query } }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.has_more ? (page.data.at(-1)?.id ?? null) : null),
    refetchInterval: ({ state }) => EVENTS_MS * (state.data?.pages.length ?? 1),
  });

/** Who made each version of a job, as far as that is kept. */
export const madeQuery = (id: string, version: number) =>
  queryOptions({
    queryKey: ['jobs', id, 'made', version],
    queryFn: async () => {
      const ofKind = (kind: string) =>
        allPages(
          (query) =>
            answered(api.GET('/api/v1/jobs/{id}/events', { params: { path: { id }, query: { ...query, kind } } })),
          idOf,
        );
      const [changed, created] = await Promise.all([ofKind('job.changed'), ofKind('job.created')]);
      return [...changed.data, ...created.data];
    },
    staleTime: Infinity,
  });

export const snapshotsQuery = (id: string, isLive: boolean) =>
  queryOptions({
    queryKey: ['jobs', id, 'snapshots'],
    queryFn: () => answered(api.GET('/api/v1/jobs/{id}/snapshots', { params: { path: { id }, query: { limit: 60 } } })),
    refetchInterval: isLive ? LISTS_MS : false,
  });

/** Which rejected rows; all of them unless said. */
export interface RejectedFilter {
  stream?: string | undefined;
  reason?: string | undefined;
}

const REJECTED_PAGE = 50;

/** A page of rows that are missing from a job's results, after the row `before`; the first one is followed. */
export const rejectedQuery = (id: string, filter: RejectedFilter, before: string | null, isLive: boolean) =>
  queryOptions({
    queryKey: ['jobs', id, 'rejected', filter, before],
    queryFn: () => {
      const query = { ...filter, limit: REJECTED_PAGE, ...(before !== null && { starting_after: before }) };
      return answered(api.GET('/api/v1/jobs/{id}/rejected', { params: { path: { id }, query } }));
    },
    refetchInterval: isLive && before === null ? LISTS_MS : false,
  });

/** Earlier versions of a job; there are no others until its version rises. */
export const revisionsQuery = (id: string, version: number) =>
  queryOptions({
    queryKey: ['jobs', id, 'revisions', version],
    queryFn: () =>
      allPages(
        ({ limit, starting_after }) => {
          const query = { limit, ...(starting_after !== undefined && { starting_after: Number(starting_after) }) };
          return answered(api.GET('/api/v1/jobs/{id}/revisions', { params: { path: { id }, query } }));
        },
        (revision) => String(revision.version),
      ),
    staleTime: Infinity,
  });

/** What a change would do to this version of a job. */
export const diffOf = (id: string, change: JobChange) =>
  answered(api.POST('/api/v1/jobs/{id}/diff', { params: { path: { id } }, body: change }));

export const diffQuery = (id: string, version: number, change: JobChange) =>
  queryOptions({
    queryKey: ['jobs', id, 'diff', version, change],
    queryFn: () => diffOf(id, change),
    staleTime: 10_000,
  });

/** What a job's process wrote, as far back as the page has followed it. */
export const logQuery = (client: QueryClient, id: string, which: 'driver' | 'spark', isLive: boolean) => {
  const queryKey = ['jobs', id, 'log', which];
  return queryOptions({
    queryKey,
    queryFn: async (): Promise<FollowedLog> => {
      const params = { path: { id }, query: { which } };
      const now = await answered(api.GET('/api/v1/jobs/{id}/logs', { params, parseAs: 'text' }));
      return grown(client.getQueryData<FollowedLog>(queryKey), now);
    },
    refetchInterval: isLive ? LOG_MS : false,
  });
};

/** Reports of the last `minutes`. */
export const historyQuery = (client: QueryClient, id: string, minutes: number, isLive: boolean) => {
  const queryKey = ['jobs', id, 'history', minutes];
  return queryOptions({
    queryKey,
    queryFn: async (): Promise<History> => {
      const known = client.getQueryData<History>(queryKey);
      const askedMs = Date.now();
      const query = { minutes: minutesToAsk(known, askedMs, minutes), units: 'newest' as const };
      const { points } = await answered(api.GET('/api/v1/jobs/{id}/metrics', { params: { path: { id }, query } }));
      return { askedMs, reports: joined(known?.reports ?? [], points.map(reportOf), minutes) };
    },
    refetchInterval: isLive ? METRICS_MS : false,
  });
};

/** The newest report of a running job, for lists; null before its first. */
export const latestReportQuery = (id: string) =>
  queryOptions({
    queryKey: ['jobs', id, 'latest'],
    queryFn: async () => {
      const query = { minutes: LATEST_MINUTES, units: 'newest' as const };
      const { points } = await answered(api.GET('/api/v1/jobs/{id}/metrics', { params: { path: { id }, query } }));
      const newest = points[points.length - 1];
      return newest === undefined ? null : reportOf(newest);
    },
    refetchInterval: LISTS_MS,
  });

export const streamsQuery = queryOptions({
  queryKey: ['streams'],
  queryFn: () => allPages((query) => answered(api.GET('/api/v1/streams', { params: { query } })), idOf),
  refetchInterval: everyPages(LISTS_MS),
});

export const streamQuery = (name: string) =>
  queryOptions({
    queryKey: ['streams', name],
    queryFn: () => answered(api.GET('/api/v1/streams/{id}', { params: { path: { id: name } } })),
  });

export const sampleQuery = (name: string) =>
  queryOptions({
    queryKey: ['streams', name, 'sample'],
    queryFn: () => answered(api.POST('/api/v1/streams/{id}/sample', { params: { path: { id: name } } })),
    staleTime: 60_000,
    retry: false,
  });

export const relationsQuery = queryOptions({
  queryKey: ['relations'],
  queryFn: () => allPages((query) => answered(api.GET('/api/v1/relations', { params: { query } })), idOf),
  refetchInterval: everyPages(LISTS_MS),
});

export const relationQuery = (name: string) =>
  queryOptions({
    queryKey: ['relations', name],
    queryFn: () => answered(api.GET('/api/v1/relations/{id}', { params: { path: { id: name } } })),
  });

export const relationSampleQuery = (name: string) =>
  queryOptions({
    queryKey: ['relations', name, 'sample'],
    queryFn: () => answered(api.POST('/api/v1/relations/{id}/sample', { params: { path: { id: name } } })),
    staleTime: 60_000,
    retry: false,
  });

/** A relation's versions in each job that joins it. */
export const relationVersionsQuery = (name: string) =>
  queryOptions({
    queryKey: ['relations', name, 'versions'],
    queryFn: () => answered(api.GET('/api/v1/relations/{id}/versions', { params: { path: { id: name } } })),
    refetchInterval: LISTS_MS,
  });

/** The versions of all relations that a job joins. */
export const jobRelationsQuery = (id: string) =>
  queryOptions({
    queryKey: ['jobs', id, 'relations'],
    queryFn: () => answered(api.GET('/api/v1/jobs/{id}/relations', { params: { path: { id } } })),
    refetchInterval: LISTS_MS,
  });

export const generatorsQuery = queryOptions({
  queryKey: ['generators'],
  queryFn: () => answered(api.GET('/api/v1/generators')),
  staleTime: Infinity,
});

export const demosQuery = queryOptions({
  queryKey: ['demos'],
  queryFn: () => answered(api.GET('/api/v1/demos')),
  refetchInterval: LISTS_MS,
});

export const machinesQuery = queryOptions({
  queryKey: ['machines'],
  queryFn: () => allPages((query) => answered(api.GET('/api/v1/machines', { params: { query } })), nameOf),
  refetchInterval: everyPages(LISTS_MS),
});

export const eventsQuery = queryOptions({
  queryKey: ['events'],
  queryFn: () => answered(api.GET('/api/v1/events', { params: { query: { limit: 12 } } })),
  refetchInterval: EVENTS_MS,
});

export const operatorsQuery = queryOptions({
  queryKey: ['operators'],
  queryFn: () => answered(api.GET('/api/v1/operators')),
  staleTime: Infinity,
});

export const savedQueriesQuery = queryOptions({
  queryKey: ['saved-queries'],
  queryFn: () => allPages((query) => answered(api.GET('/api/v1/saved-queries', { params: { query } })), idOf),
});

export const usersQuery = queryOptions({
  queryKey: ['users'],
  queryFn: () => allPages((query) => answered(api.GET('/api/v1/users', { params: { query } })), idOf),
});

/** One's own keys, or for admins those of all users. */
export const apiKeysQuery = (ofAll: boolean) =>
  queryOptions({
    queryKey: ['api-keys', ofAll],
    queryFn: () =>
      allPages((query) => answered(api.GET('/api/v1/api-keys', { params: { query: { ...query, all: ofAll } } })), idOf),
  });

export const validateQuery = (draft: Draft) =>
  queryOptions({
    queryKey: ['validate', draft],
    queryFn: () => answered(api.POST('/api/v1/jobs/validate', { body: draft })),
    staleTime: 10_000,
  });

export const explainQuery = (draft: Draft) =>
  queryOptions({
    queryKey: ['explain', draft],
    queryFn: () => answered(api.POST('/api/v1/jobs/explain', { body: draft })),
    staleTime: 10_000,
    retry: false,
  });

/** Only so many are made at once: one that is told to come again does, a few times. */
const PREVIEW_TRIES = 5;

export const previewQuery = (draft: Draft) =>
  queryOptions({
    queryKey: ['preview', draft],
    queryFn: () => answered(api.POST('/api/v1/jobs/preview', { body: draft })),
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    retry: (failures, error) => asProblem(error).code === 'rate_limited' && failures < PREVIEW_TRIES,
    retryDelay: 1_000,
  });
