/** What who is there may do: pages offer nothing that the API would refuse. */
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '../api/queries';
import type { Me, Role } from '../api/types';
import { ROLES } from './roles';

/** Who is there; the frame shows no page before that is known. */
export const useMe = (): Me | undefined => useQuery(meQuery).data ?? undefined;

/** Whether they have this role, or one that may more. */
export function useMay(role: Role): boolean {
  const me = useMe();
  return me !== undefined && ROLES.indexOf(me.role) >= ROLES.indexOf(role);
}
