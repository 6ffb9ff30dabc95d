/** Delete a user; what they own stays, and belongs to nobody. */
import { useMutation } from '@tanstack/react-query';
import { answered, api } from '../../api/client';
import type { User } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { deleteUser } from '../../recipes';
import { useUsersChanged } from './useChangeUser';

export function DeleteUserDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const changed = useUsersChanged(user);
  const remove = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/users/{id}', { params: { path: { id: user.id } } })),
    onSuccess: async () => {
      await changed();
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Delete ${user.name}?`}
      keep="Keep them"
      act="Delete"
      recipe={deleteUser(user.name)}
      what="delete this user"
      doing={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      They are removed with their logins and keys. Their streams and jobs stay, belong to nobody, and are changed by
      admins only.
    </ConfirmDialog>
  );
}
