/** Sends an entry: to be tested, or to be saved. What is refused stands at its fields. */
import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { Spec } from '../../../api/types';
import { fieldsOf } from './draft';
import { errorsOf, isAllShown, type Errors } from './fieldErrors';
import type { Secrets } from './secrets';
import type { TypedCredentials } from './useCredentials';
import type { Entry } from './useEntry';
import { useTest } from './useTest';

interface Sending {
  entry: Entry;
  credentials: TypedCredentials;
  /** A new stream has a name, which may be another's. */
  hasName: boolean;
  save: (spec: Spec, secrets: Secrets) => Promise<void>;
  /** Goes to the first field that is wrong. */
  goToMistake: () => void;
  onTested: () => void;
}

export function useSending({ entry, credentials, hasName, save, goToMistake, onTested }: Sending) {
  const { test, tested, isPending: isTesting } = useTest();
  const saving = useMutation({
    mutationFn: ({ spec, secrets }: { spec: Spec; secrets: Secrets }) => save(spec, secrets),
    gcTime: 0,
  });
  const { spec } = entry;
  const { choice, secrets } = credentials;
  const now = useRef('');
  useEffect(() => {
    now.current = JSON.stringify(spec);
  }, [spec]);

  const taken = hasName ? 'name' : undefined;
  const shown = entry.view === 'form' ? fieldsOf(entry.form.draft) : Object.keys(spec ?? {});
  const isLeft = saving.error !== null && !isAllShown(errorsOf(saving.error, taken), [...shown, 'name', 'secrets']);

  const refuse = (found: Errors, mayGo: boolean) => {
    entry.refuse(found);
    if (mayGo) goToMistake();
  };
  /** The entry, if nothing is wrong with it that can be told here. */
  const checked = (): Spec | null => {
    const mistakes = { ...entry.check(), ...credentials.check() };
    refuse(mistakes, Object.keys(mistakes).length > 0);
    return Object.keys(mistakes).length === 0 ? spec : null;
  };
  const look = (asked: Spec) => {
    saving.reset();
    test({ spec: asked, secrets: choice === 'replace' ? secrets : undefined }, (error) => {
      // What was changed meanwhile is not what was refused, and who goes on typing is left where they are.
      if (error !== null && now.current === JSON.stringify(asked)) refuse(errorsOf(error), !isTyping());
      onTested();
    });
  };
  return {
    saving,
    /** The refusal says something that no field can show. */
    isLeft,
    tested,
    isTesting,
    look,
    runTest: () => {
      const asked = checked();
      if (asked !== null) look(asked);
    },
    runSave: () => {
      const asked = checked();
      if (asked === null) return;
      saving.mutate({ spec: asked, secrets }, { onError: (error) => refuse(errorsOf(error, taken), true) });
    },
  };
}

const isTyping = (): boolean => document.activeElement?.matches('input, textarea, select, [contenteditable]') === true;
