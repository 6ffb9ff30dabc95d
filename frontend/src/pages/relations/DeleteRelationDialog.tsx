/** Delete a relation's entry, and go back to the others. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { relationsQuery } from '../../api/queries';
import type { Relation } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { deleteRelation } from '../../recipes';

export function DeleteRelationDialog({ relation, onClose }: { relation: Relation; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/relations/{id}', { params: { path: { id: relation.id } } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: relationsQuery.queryKey, exact: true });
      await navigate('/relations');
      client.removeQueries({ queryKey: [...relationsQuery.queryKey, relation.name] });
    },
  });
  return (
    <ConfirmDialog
      title={`Delete ${relation.name}?`}
      act="Delete"
      recipe={deleteRelation(relation.name)}
      what="delete this relation"
      doing={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      Its entry is removed. Its files or its database stay as they are.
    </ConfirmDialog>
  );
}
