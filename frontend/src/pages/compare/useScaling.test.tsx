import { QueryClientProvider } from '@tanstack/react-query';
import { renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { beforeEach, expect, test, vi } from 'vitest';
import { queryClient } from '../../api/queryClient';
import type { Draft } from '../../api/types';
import { SLOTS } from './scaling';
import { useScaling } from './useScaling';

const SETTING = { slots: 4, ordering: 'none', knobs: {} };
const wrapper = ({ children }: { children: ReactNode }) => (
  <QueryClientProvider client={queryClient}>{children}</QueryClientProvider>
);
const shown = () => renderHook(() => useScaling('SELECT ONLINE', SETTING, true), { wrapper });

/** Numbers of slots that were asked about. */
let asked: unknown[] = [];
/** After so many an answer waits. */
let most = Infinity;
let goOn = () => undefined as unknown;

beforeEach(() => {
  queryClient.clear();
  asked = [];
  most = Infinity;
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.url.endsWith('/validate')) return Response.json({ valid: true, diagnostics: [] });
    const { run } = (await request.json()) as Draft;
    if (asked.length === most) await new Promise((resolve) => (goOn = () => resolve(null)));
    asked.push(run?.slots);
    return Response.json({ plan: {}, text: '', columns: [] });
  });
});

test('what was left before it was asked to its end goes on, and what is whole is not asked again', async () => {
  most = 2;
  const first = shown();
  await waitFor(() => expect(first.result.current.data?.steps).toHaveLength(2));
  first.unmount();
  most = Infinity;
  const second = shown();
  goOn();
  await waitFor(() => expect(second.result.current.data?.steps).toHaveLength(SLOTS.length));
  await waitFor(() => expect(second.result.current.isFetching).toBe(false));
  second.unmount();
  expect(shown().result.current.isFetching).toBe(false);
  expect(asked).toEqual(SLOTS);
});
