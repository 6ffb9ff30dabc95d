import { QueryClient, QueryClientProvider, focusManager } from '@tanstack/react-query';
import { act, renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import type { Job } from '../../../api/types';
import { formOf } from './form';
import { useLook } from './useLook';

const job = { id: 'job_1', version: 3, query: 'q', queries: {}, operator: {}, results: {}, run: {} } as unknown as Job;
const typed = { base: job, form: { ...formOf(job), query: 'another' } };

/** Requests that wait for their answers, by the ends of their addresses. */
const asked = new Map<string, (body: unknown) => void>();
const answer = (path: string, body: unknown) => act(() => Promise.resolve(asked.get(path)?.(body)));
const right = { valid: true, diagnostics: [], columns: [], summary: 'it is right' };
const change = { field: 'query', before: 'q', after: 'another', effect: 'from_checkpoint' };

function looking() {
  vi.stubGlobal('fetch', (request: Request) => {
    const path = new URL(request.url).pathname.split('/').at(-1) ?? '';
    return new Promise<Response>((resolve) =>
      asked.set(path, (body) => {
        asked.delete(path);
        resolve(Response.json(body));
      }),
    );
  });
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  return renderHook(() => useLook(job, typed), { wrapper }).result;
}

afterEach(() => {
  vi.useRealTimers();
  focusManager.setFocused(undefined);
  asked.clear();
});

test('what was answered is looked at no longer, also while it is asked for again', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  const look = looking();
  expect(look.current.isLooking).toBe(true);
  await waitFor(() => expect(asked.has('validate')).toBe(true));
  await answer('validate', right);
  await waitFor(() => expect(asked.has('diff')).toBe(true));
  expect(look.current.isLooking).toBe(true);
  await answer('diff', { changes: [change] });
  await waitFor(() => expect(look.current.isLooking).toBe(false));

  await act(() => vi.advanceTimersByTimeAsync(11_000));
  act(() => (focusManager.setFocused(false), focusManager.setFocused(true)));
  await waitFor(() => expect([...asked.keys()].sort()).toEqual(['diff', 'validate']));
  expect(look.current.isLooking).toBe(false);
  await answer('validate', { ...right, valid: false });
  await waitFor(() => expect(look.current.diff).toBe(null));
  expect(look.current.isLooking).toBe(false);
});
