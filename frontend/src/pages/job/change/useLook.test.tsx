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
const asked = new Map<string, (body: unknown, status: number) => void>();
const answer = (path: string, body: unknown, status = 200) =>
  act(() => Promise.resolve(asked.get(path)?.(body, status)));
const span = { line: 1, column: 2, end_line: 1, end_column: 3 };
const wrong = {
  type: '',
  title: 'The request is wrong',
  status: 422,
  code: 'invalid',
  detail: 'no column',
  errors: [{ pointer: '/query', detail: 'no column', span }],
};
const change = { field: 'query', before: 'q', after: 'another', effect: 'from_checkpoint' };

function looking() {
  vi.stubGlobal('fetch', (request: Request) => {
    const path = new URL(request.url).pathname.split('/').at(-1) ?? '';
    return new Promise<Response>((resolve) =>
      asked.set(path, (body, status) => {
        asked.delete(path);
        resolve(Response.json(body, { status }));
      }),
    );
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
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
  await waitFor(() => expect([...asked.keys()]).toEqual(['diff']));
  await answer('diff', { changes: [change] });
  await waitFor(() => expect(look.current.isLooking).toBe(false));
  expect(look.current.diff?.changes).toEqual([change]);

  await act(() => vi.advanceTimersByTimeAsync(11_000));
  act(() => (focusManager.setFocused(false), focusManager.setFocused(true)));
  await waitFor(() => expect([...asked.keys()]).toEqual(['diff']));
  expect(look.current.isLooking).toBe(false);
  await answer('diff', wrong, 422);
  await waitFor(() => expect(look.current.diff).toBe(null));
  expect(look.current.isLooking).toBe(false);
});

test('a change is judged by the streams that the job has, and what is wrong with it stands where it was typed', async () => {
  const look = looking();
  await waitFor(() => expect(asked.has('diff')).toBe(true));
  expect(asked.has('validate')).toBe(false); // it would look at the streams as they are registered now
  await answer('diff', wrong, 422);
  await waitFor(() => expect(look.current.diagnostics?.valid).toBe(false));
  expect(look.current.diagnostics?.diagnostics).toEqual(wrong.errors);
  expect(look.current.error).toBe(null);
});

test('a refusal that is not about what was typed is shown as it is', async () => {
  const look = looking();
  await waitFor(() => expect(asked.has('diff')).toBe(true));
  await answer('diff', { ...wrong, status: 409, code: 'conflict', errors: [] }, 409);
  await waitFor(() => expect(look.current.error?.message).toBe('no column'));
  expect(look.current.diagnostics).toBeUndefined();
});
