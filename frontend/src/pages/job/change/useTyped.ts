/** What is typed into the form of a change, and what else fills it. Nobody's typing is replaced unasked. */
import { useState } from 'react';
import type { Job } from '../../../api/types';
import type { Definition } from './definition';
import { changeOf, formOf, isEmpty, type Typed } from './form';

/** @param onFilled the form was filled from elsewhere, and is to be seen. */
export function useTyped(job: Job, onFilled: () => void) {
  const [typed, setTyped] = useState<Typed | null>(null);
  const [instead, setInstead] = useState<Typed | null>(null);
  const hasTyped = typed !== null && !isEmpty(changeOf(typed.base, typed.form));
  const fill = (next: Typed) => {
    setInstead(null);
    setTyped(next);
    onFilled();
  };
  const fillOrAsk = hasTyped ? setInstead : fill;
  return {
    typed,
    setTyped,
    hasTyped,
    goBack: (definition: Definition) => fillOrAsk({ base: job, form: formOf(definition) }),
    take: (fields: Record<string, string>) => {
      const form = formOf(job);
      fillOrAsk({ base: job, form: { ...form, fields: { ...form.fields, ...fields } } });
    },
    /** Replaces what is typed, where that is to be asked; else null. */
    replace: instead && (() => fill(instead)),
    keep: () => setInstead(null),
  };
}
