/** The roles, from the least to the most, with what each may. */
import type { Role } from '../api/types';

export const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];

export const MAY: Record<Role, string> = {
  viewer: 'reads everything, asks results and follows them',
  operator: 'also registers streams, runs jobs and changes what is their own',
  admin: 'may do everything, with users too',
};

/** Those that somebody with this role can give to a key. */
export const rolesUpTo = (role: Role): readonly Role[] => ROLES.slice(0, ROLES.indexOf(role) + 1);
