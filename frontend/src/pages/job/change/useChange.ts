/** A change on its way: what is typed, what the API says of it, and whether it was agreed to and applied. */
import { useMemo, useState } from 'react';
import type { Job } from '../../../api/types';
import { definitionOf, isSame, type Definition } from './definition';
import { OPERATOR_NAME } from './fields';
import { formOf, pointerOf, type Form, type Typed } from './form';
import { mistakesOf } from './mistakes';
import { shownFields } from './Sections';
import { useApply } from './useApply';
import { useLook } from './useLook';

export function useChange(job: Job, typed: Typed | null, onTyped: (typed: Typed | null) => void) {
  const [agrees, setAgrees] = useState(false);
  const [applied, setApplied] = useState<number | null>(null);
  const asItIs = JSON.stringify(definitionOf(job));
  const untouched = useMemo(() => formOf(JSON.parse(asItIs) as Definition), [asItIs]);
  const { base, form } = typed ?? { base: job, form: untouched };
  const look = useLook(job, { base, form });
  const apply = useApply(job.id, (changed) => {
    setApplied(changed.version);
    setAgrees(false);
    onTyped(null);
  });
  const pointers = Object.values(shownFields(form)).flatMap((fields) => fields.map(({ path }) => pointerOf(path)));
  const put = (next: Typed | null) => {
    apply.reset();
    onTyped(next);
  };
  return {
    form,
    look,
    mistakes: mistakesOf(look.diagnostics, apply.error, [...pointers, pointerOf(OPERATOR_NAME)]),
    apply,
    /** The version that was applied last, until something else is typed. */
    applied,
    /** A restart makes a version, too, but changes nothing of what is typed over. */
    isBehind: !isSame(definitionOf(base), definitionOf(job)),
    agrees,
    setAgrees,
    edit: (change: Partial<Form>) => {
      setApplied(null);
      setAgrees(false);
      put({ base, form: { ...form, ...change } });
    },
    /** Puts something else in the place of what is typed; null for the job as it is. */
    put,
  };
}
