/** The cache of everything that was asked. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { asProblem } from './problem';

const RETRIES = 2;

/** What a second attempt may change: the platform being away, not a mistake in the request. */
const mayRetry = (failures: number, error: unknown): boolean => {
  const { status } = asProblem(error);
  return failures < RETRIES && (status === 0 || status === 503);
};

/** What one user saw is not for the next. */
export const forgetPages = (): void => queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' });

/** A login that ended shows itself by any request; then the whole page asks again who is there. */
function signedOut(error: unknown): void {
  const wasIn = Boolean(queryClient.getQueryData(['me']));
  if (wasIn && asProblem(error).status === 401) void queryClient.resetQueries({ queryKey: ['me'] });
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error, query) => query.queryKey[0] !== 'me' && signedOut(error) }),
  mutationCache: new MutationCache({ onError: signedOut }),
  defaultOptions: { queries: { retry: mayRetry, networkMode: 'always' }, mutations: { networkMode: 'always' } },
});
