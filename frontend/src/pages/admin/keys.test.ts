import { expect, test } from 'vitest';
import type { ApiKey } from '../../api/types';
import { inOrder } from './keys';

const key = (id: string, revoked_at: string | null, expires_at: string | null = null) =>
  ({ id, revoked_at, expires_at }) as ApiKey;

test('keys that open nothing stand below, and the rest as it came', () => {
  const keys = [key('4', '2026-01-01T00:00:00Z'), key('3', null), key('2', '2026-01-01T00:00:00Z'), key('1', null)];
  expect(inOrder(keys).map(({ id }) => id)).toEqual(['3', '1', '4', '2']);
});

test('a key whose time is over opens nothing either', () => {
  const keys = [key('3', null, '2026-01-01T00:00:00Z'), key('2', null, '9999-01-01T00:00:00Z'), key('1', null)];
  expect(inOrder(keys).map(({ id }) => id)).toEqual(['2', '1', '3']);
});
