/** What is typed into the page, which finds it again when it is opened the next time. */
import { useEffect, useState } from 'react';
import { EMPTY, keepDraft, keptDraft, type JoinDraft } from './draft';

interface Kept {
  draft: JoinDraft;
  onEdit: (edit: (before: JoinDraft) => JoinDraft) => void;
  onDiscard: () => void;
}

/** @param owner who types: others who sign in in the same tab have drafts of their own. */
export function useDraft(owner: string): Kept {
  const [draft, setDraft] = useState(() => keptDraft(owner));
  useEffect(() => keepDraft(owner, draft), [owner, draft]);
  const discard = () => {
    keepDraft(owner, EMPTY); // at once: the page may be left before it is drawn again
    setDraft(EMPTY);
  };
  return { draft, onEdit: setDraft, onDiscard: discard };
}
