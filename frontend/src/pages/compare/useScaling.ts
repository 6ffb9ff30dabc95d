/** Asks the same for one number of slots after the other, and gives what is known so far. */
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Place } from '../../api/types';
import { SLOTS, type Step } from './scaling';
import { scaledDraft, type Setting } from './setting';
import { askedQuery } from './useComparison';

interface Scaling {
  steps: Step[];
  mistakes?: Place[] | undefined;
}

export function useScaling(query: string, setting: Setting, isEnabled: boolean) {
  const client = useQueryClient();
  const drafts = useMemo(
    () => SLOTS.map((slots) => ({ slots, draft: scaledDraft(query, setting, slots) })),
    [query, setting],
  );
  const queryKey = ['explain', 'scaled', drafts];
  return useQuery({
    queryKey,
    queryFn: async ({ signal }): Promise<Scaling> => {
      const steps: Step[] = [];
      for (const { slots, draft } of drafts) {
        // Only the first can be wrong in a way that the others are not known to be.
        const { explanation, mistakes } = await client.fetchQuery(askedQuery(draft, steps.length > 0));
        if (signal.aborted) break;
        if (explanation === undefined) return { steps, mistakes };
        steps.push({ slots, explanation });
        client.setQueryData<Scaling>(queryKey, { steps: [...steps] });
      }
      return { steps };
    },
    placeholderData: keepPreviousData,
    enabled: isEnabled,
    // What was interrupted is asked to its end when it is seen again.
    staleTime: ({ state: { data } }) => (data?.mistakes || data?.steps.length === SLOTS.length ? Infinity : 0),
    retry: false,
  });
}
