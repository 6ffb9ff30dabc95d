/** Operators change what is their own, admins everything: nobody is offered what the API would refuse. */
import type { Me } from '../api/types';

export const mayChange = (me: Me | undefined, { owner_id }: { owner_id: string | null }): boolean =>
  me?.role === 'admin' || (me?.role === 'operator' && me.id !== null && me.id === owner_id);
