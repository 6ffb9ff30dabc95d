/** Delete a saved query; the job and its results stay. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answered, api } from '../../api/client';
import { savedQueriesQuery } from '../../api/queries';
import type { SavedQuery } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { forgetQuestion } from '../../recipes';

interface ForgetDialogProps {
  kept: SavedQuery;
  onForgotten: () => void;
  onClose: () => void;
}

export function ForgetDialog({ kept, onForgotten, onClose }: ForgetDialogProps) {
  const client = useQueryClient();
  const forget = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/saved-queries/{id}', { params: { path: { id: kept.id } } })),
    onSuccess: async () => {
      onForgotten();
      await client.invalidateQueries({ queryKey: savedQueriesQuery.queryKey });
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Delete ${kept.name}?`}
      act="Delete"
      recipe={forgetQuestion(kept.id)}
      what="delete this query"
      doing={forget}
      onConfirm={() => forget.mutate()}
      onClose={onClose}
    >
      Nobody can ask it under this name any more. The job and its results stay.
    </ConfirmDialog>
  );
}
