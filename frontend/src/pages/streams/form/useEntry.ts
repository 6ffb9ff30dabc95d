/** The entry as it is typed: one value, seen as a form or as JSON. */
import { useMemo, useState } from 'react';
import type { Spec } from '../../../api/types';
import { draftOf, mistakesIn, specOf, type Draft, type TextField } from './draft';
import { NO_ERRORS, without, type Errors } from './fieldErrors';
import { readObject, type ObjectReading } from './json';

export type View = 'form' | 'json';

/** What the fields of the form know. */
export interface Form {
  draft: Draft;
  errors: Errors;
  set: (field: TextField, text: string) => void;
  /** Change parts of the draft; what was said of `field`, or where it is null of all, is no longer true. */
  change: (field: string | null, parts: Partial<Draft>) => void;
}

export interface Entry {
  view: View;
  form: Form;
  text: string;
  reading: ObjectReading;
  /** Null where the JSON is wrong. */
  spec: Spec | null;
  errors: Errors;
  show: (view: View) => void;
  type: (text: string) => void;
  replace: (spec: Spec) => void;
  refuse: (errors: Errors) => void;
  forget: (field: string) => void;
  /** What can be told to be wrong without asking. */
  check: () => Errors;
}

const pretty = (spec: Spec): string => JSON.stringify(spec, null, 2);

export function useEntry(first: Spec): Entry {
  const [view, setView] = useState<View>('form');
  const [draft, setDraft] = useState(() => draftOf(first));
  const [text, setText] = useState(() => pretty(first));
  const [errors, setErrors] = useState(NO_ERRORS);
  const reading = useMemo(() => readObject(text), [text]);
  const written = reading.mistake === null ? reading.value : null;
  const spec = view === 'form' ? specOf(draft) : written;
  const forget = (field: string) => setErrors((before) => without(before, field));
  const change = (field: string | null, parts: Partial<Draft>) => {
    setDraft((before) => ({ ...before, ...parts }));
    if (field === null) setErrors(NO_ERRORS);
    else forget(field);
  };
  const replace = (next: Spec) => {
    setDraft(draftOf(next));
    setText(pretty(next));
  };
  return {
    view,
    form: {
      draft,
      errors,
      set: (field, typed) => {
        setDraft((before) => ({ ...before, texts: { ...before.texts, [field]: typed } }));
        forget(field);
      },
      change,
    },
    text,
    reading,
    spec,
    errors,
    show: (next) => {
      if (spec === null) return;
      replace(spec);
      setView(next);
    },
    type: (typed) => {
      setText(typed);
      setErrors(NO_ERRORS);
    },
    replace,
    refuse: setErrors,
    forget,
    check: () => (view === 'form' ? mistakesIn(draft) : NO_ERRORS),
  };
}
