/** Revoke an API key, for good. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answered, api } from '../../api/client';
import type { ApiKey } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { revokeKey } from '../../recipes';

export function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/api-keys/{id}', { params: { path: { id: apiKey.id } } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['api-keys'] });
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Revoke ${apiKey.name}?`}
      act="Revoke"
      recipe={revokeKey(apiKey.id)}
      what="revoke this key"
      doing={revoke}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      From now on {apiKey.start}… opens nothing: whatever uses it is refused. It cannot be given back; a new key can be
      made.
    </ConfirmDialog>
  );
}
