/** The order of keys: those that open something first, each part newest first as they come. */
import type { ApiKey } from '../../api/types';

export function inOrder(keys: readonly ApiKey[]): ApiKey[] {
  const isRevoked = ({ revoked_at }: ApiKey) => revoked_at !== null;
  return [...keys.filter((key) => !isRevoked(key)), ...keys.filter(isRevoked)];
}
