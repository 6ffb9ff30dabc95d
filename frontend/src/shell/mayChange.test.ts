import { expect, test } from 'vitest';
import type { Me } from '../api/types';
import { mayChange } from './mayChange';

const me = (role: Me['role'], id: string | null): Me => ({ id, name: 'ann', role, key_id: null });

test('operators change what is their own, admins all, and viewers nothing', () => {
  expect(mayChange(me('operator', 'u1'), { owner_id: 'u1' })).toBe(true);
  expect(mayChange(me('operator', 'u1'), { owner_id: 'u2' })).toBe(false);
  expect(mayChange(me('operator', 'u1'), { owner_id: null })).toBe(false);
  expect(mayChange(me('admin', null), { owner_id: null })).toBe(true);
  expect(mayChange(me('viewer', 'u1'), { owner_id: 'u1' })).toBe(false);
  expect(mayChange(undefined, { owner_id: null })).toBe(false);
});
