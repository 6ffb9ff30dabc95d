import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test, vi } from 'vitest';
import { useTest } from './useTest';

const sample = (rowsSeen: number) =>
  new Response(
    JSON.stringify({ columns: [], rows: [], rows_seen: rowsSeen, bad_records: {}, rate_per_s: null, skew: {} }),
    { headers: { 'Content-Type': 'application/json' } },
  );

test('the answer to an older question never stands in the place of a newer one', async () => {
  const answers: ((response: Response) => void)[] = [];
  vi.stubGlobal('fetch', () => new Promise<Response>((resolve) => answers.push(resolve)));
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useTest(), { wrapper });
  const told: string[] = [];
  act(() => result.current.test({ spec: { path: 'old' }, secrets: undefined }, () => told.push('old')));
  act(() => result.current.test({ spec: { path: 'new' }, secrets: undefined }, () => told.push('new')));
  await waitFor(() => expect(answers).toHaveLength(2));
  answers[1]?.(sample(2));
  await waitFor(() => expect(result.current.tested?.sample?.rows_seen).toBe(2));
  answers[0]?.(sample(1));
  await act(() => new Promise((resolve) => setTimeout(resolve, 20)));
  expect(result.current.tested?.spec).toEqual({ path: 'new' });
  expect(told).toEqual(['new']);
  expect(result.current.isPending).toBe(false);
});
