/** The query and its setting once nobody types any more, and what is wrong with them. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { validateQuery } from '../../api/queries';
import { squigglesOf } from '../../editor/offsets';
import { AUTO, draftOf, type Setting } from './setting';

/** Each change asks for all operators, so it is waited for a little longer than for a verdict alone. */
const TYPED_MS = 600;

export function useSettled(typed: string, given: Setting) {
  const [query] = useDebouncedValue(typed, TYPED_MS);
  const [setting] = useDebouncedValue(given, TYPED_MS);
  const draft = useMemo(() => draftOf(query, { ...setting, knobs: {} }, AUTO), [query, setting]);
  const checked = useQuery({ ...validateQuery(draft), placeholderData: (before) => before });
  const squiggles = useMemo(
    () => (checked.isPlaceholderData ? [] : squigglesOf(query, checked.data?.diagnostics ?? [])),
    [query, checked.data, checked.isPlaceholderData],
  );
  return { query, setting, draft, checked, squiggles, isValid: checked.data?.valid === true };
}

export type Settled = ReturnType<typeof useSettled>;
