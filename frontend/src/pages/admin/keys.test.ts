import { expect, test } from 'vitest';
import type { ApiKey } from '../../api/types';
import { inOrder } from './keys';

const key = (id: string, revoked_at: string | null) => ({ id, revoked_at }) as ApiKey;

test('keys that open nothing stand below, and the rest as it came', () => {
  const keys = [key('4', '2026-01-01T00:00:00Z'), key('3', null), key('2', '2026-01-01T00:00:00Z'), key('1', null)];
  expect(inOrder(keys).map(({ id }) => id)).toEqual(['3', '1', '4', '2']);
});
