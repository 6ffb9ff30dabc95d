/** Asks about every operator. Nothing is asked that would be refused: mistakes are looked for before. */
import { keepPreviousData, queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import { answered, api } from '../../api/client';
import { operatorsQuery } from '../../api/queries';
import type { Draft, Explanation } from '../../api/types';
import { planOf } from '../join/plan';
import { rowsOf, type Asked, type Row } from './comparison';
import { AUTO, draftOf, hasKnobs, resolved, type Setting } from './setting';

const KEPT_MS = 300_000;

/** An explanation, and for drafts that may have mistakes these in its place. */
export const askedQuery = (draft: Draft, isSure: boolean) =>
  queryOptions({
    queryKey: ['explain', 'checked', draft],
    queryFn: async ({ signal }): Promise<Asked> => {
      if (!isSure) {
        const { valid, diagnostics } = await answered(api.POST('/api/v1/jobs/validate', { body: draft, signal }));
        if (!valid) return { mistakes: diagnostics };
      }
      return { explanation: await answered(api.POST('/api/v1/jobs/explain', { body: draft, signal })) };
    },
    staleTime: KEPT_MS,
  });

export interface Comparison {
  base: Explanation | undefined;
  /** As it was given, with the knobs of `auto` at the operator that it stands for. */
  setting: Setting;
  rows: Row[];
  asked: Asked[];
  names: string[];
  isAsking: boolean;
  error: Error | null;
  /** Ask again what failed. */
  retry: () => void;
}

/**
 * @param isValid whether the query is right; nothing is asked about one that is not.
 */
export function useComparison(query: string, given: Setting, isValid: boolean): Comparison {
  const operators = useQuery(operatorsQuery);
  const plain = { ...given, knobs: {} };
  // What was known stays until there is news, so that nothing jumps while a knob is turned.
  const kept = { placeholderData: keepPreviousData };
  const base = useQuery({ ...askedQuery(draftOf(query, plain, AUTO), true), ...kept, enabled: isValid });
  const inOrder = draftOf(query, { ...plain, ordering: 'total' }, AUTO);
  const ordered = useQuery({ ...askedQuery(inOrder, true), ...kept, enabled: isValid });
  const explained = base.data?.explanation;
  const plan = explained && planOf(explained);
  const setting = plan === undefined ? given : resolved(given, plan.operator);
  const refused = new Set(plan?.options.flatMap(({ name, refusal }) => (refusal === null ? [] : [name])));
  // Those for other kinds of join are not among the plan's options.
  const offered = (operators.data ?? []).filter(
    ({ name }) => plan === undefined || plan.options.some((option) => option.name === name),
  );
  const names = offered.map(({ name }) => name);
  const own = useQueries({
    queries: names.map((name) => ({
      ...askedQuery(draftOf(query, setting, name), !hasKnobs(setting, name)),
      ...kept,
      enabled: isValid && base.isSuccess && !base.isPlaceholderData && !refused.has(name),
    })),
  });
  const asked = own.map(({ data }, place) => (refused.has(names[place] ?? '') ? {} : (data ?? {})));
  const all = [operators, base, ordered, ...own];
  return {
    base: explained,
    setting,
    rows: explained === undefined ? [] : rowsOf(offered, explained, ordered.data?.explanation, asked),
    asked,
    names,
    isAsking: all.some(({ isFetching }) => isFetching),
    error: all.find(({ error }) => error !== null)?.error ?? null,
    retry: () => {
      for (const one of all) if (one.error !== null) void one.refetch();
    },
  };
}
