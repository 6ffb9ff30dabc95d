/** The order of keys: those that open something first, each part newest first as they come. */
import type { ApiKey } from '../../api/types';

/** Whether a key opens nothing any more: it was revoked, or its time is over. */
export const isOver = ({ revoked_at, expires_at }: ApiKey): boolean =>
  revoked_at !== null || (expires_at !== null && Date.parse(expires_at) <= Date.now());

export function inOrder(keys: readonly ApiKey[]): ApiKey[] {
  return [...keys.filter((key) => !isOver(key)), ...keys.filter(isOver)];
}
