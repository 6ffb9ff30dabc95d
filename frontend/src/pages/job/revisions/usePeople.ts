/** Names of who did something, as far as one may know them. */
import { useQuery } from '@tanstack/react-query';
import { usersQuery } from '../../../api/queries';
import { useMe } from '../../../shell/useMay';

interface People {
  /** Whether anybody signs in here; if not, there are no names. */
  hasPeople: boolean;
  nameOf: (actorId: string | null) => string;
}

export function usePeople(): People {
  const me = useMe();
  const hasPeople = me !== undefined && me.id !== null;
  // Only admins see the names of others.
  const users = useQuery({ ...usersQuery, enabled: hasPeople && me.role === 'admin' });
  const nameOf = (actorId: string | null): string => {
    if (actorId === null) return '–';
    if (actorId === me?.id) return 'you';
    return users.data?.data.find((user) => user.id === actorId)?.name ?? 'somebody else';
  };
  return { hasPeople, nameOf };
}
