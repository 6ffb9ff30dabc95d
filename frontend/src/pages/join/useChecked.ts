/** What the platform says of a draft: its mistakes, where each stands, and what keeps the job from being created. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { validateQuery } from '../../api/queries';
import { useSquiggles } from '../../editor/useSquiggles';
import { OPERATOR_NAME } from '../job/change/fields';
import { pointerOf } from '../job/change/form';
import { mistakesOf } from '../job/change/mistakes';
import { blockersOf, tooLong } from './blockers';
import { bodyOf, type JoinDraft } from './draft';
import { sectionsOf } from './sections';
import { useColumns } from './useColumns';

const TYPED_MS = 350;

export type Checked = ReturnType<typeof useChecked>;

/** @param names those of all streams. */
export function useChecked(draft: JoinDraft, names: string[], mayCreate: boolean) {
  const { query, fields: texts } = draft;
  const typed = useMemo(() => ({ query, fields: texts }), [query, texts]);
  const [settled] = useDebouncedValue(typed, TYPED_MS);
  const body = useMemo(() => bodyOf(settled), [settled]);
  const isWritten = query.trim() !== '';
  const isAsked = settled.query.trim() !== '' && tooLong(settled.query) === null;
  const checked = useQuery({ ...validateQuery(body), enabled: isAsked, placeholderData: (before) => before });
  const isOpen = settled !== typed || checked.isPending || checked.isPlaceholderData;
  const columns = useColumns(settled.query, names);
  const fields = sectionsOf(draft).flatMap((section) => section.fields);
  const pointers = [...fields.map(({ path }) => pointerOf(path)), pointerOf(OPERATOR_NAME)];
  const diagnostics = isWritten && isAsked ? checked.data : undefined;
  const mistakes = mistakesOf(diagnostics, null, pointers);
  const squiggles = useSquiggles(settled.query, isOpen ? [] : mistakes.ofQuery);
  const isRight = diagnostics?.valid === true;
  const blockers = blockersOf({
    query,
    name: draft.name,
    mayCreate,
    // What was answered before says nothing of what is being typed, also where it was an error.
    isChecking: settled !== typed || (isOpen && checked.error === null),
    isValid: diagnostics?.valid,
    mistakesInQuery: mistakes.ofQuery.length + mistakes.elsewhere.length,
    wrongFields: fields.filter(({ path }) => mistakes.at[pointerOf(path)] !== undefined).map(({ label }) => label),
  });
  return {
    body,
    columns,
    isWritten,
    /** The answer is that to what is written now. */
    isReady: !isOpen,
    isFetching: checked.isFetching,
    error: isAsked ? checked.error : null,
    diagnostics,
    mistakes,
    squiggles,
    isRight,
    blockers,
  };
}
