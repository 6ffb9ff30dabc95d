/** A change of a user; who changes themselves may be somebody else afterwards. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answered, api } from '../../api/client';
import { meQuery, usersQuery } from '../../api/queries';
import type { User, UserChange } from '../../api/types';
import { useMe } from '../../shell/useMay';

/** What is known of users, and of oneself where it was oneself, is asked again. */
export function useUsersChanged(user: Pick<User, 'id'>): () => Promise<void> {
  const client = useQueryClient();
  const me = useMe();
  return async () => {
    if (user.id === me?.id) await client.resetQueries({ queryKey: meQuery.queryKey });
    else await client.invalidateQueries({ queryKey: usersQuery.queryKey });
  };
}

export function useChangeUser(user: User, onDone: () => void) {
  const changed = useUsersChanged(user);
  return useMutation({
    mutationFn: (change: UserChange) =>
      answered(api.PATCH('/api/v1/users/{id}', { params: { path: { id: user.id } }, body: change })),
    onSuccess: async () => {
      await changed();
      onDone();
    },
  });
}
