import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { renderHook, waitFor } from '@testing-library/react';
import type { PropsWithChildren } from 'react';
import { expect, test, vi } from 'vitest';
import { historyQuery, logQuery, rejectedQuery, snapshotsQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { isLive } from './input';
import { useLastLook } from './useLastLook';

const running = { id: 'job_1', wanted: 'running', observed: 'running' } as Job;
const stopped = { id: 'job_1', wanted: 'stopped', observed: 'stopped' } as Job;

test('reports, snapshots, rejected rows and the log are asked for once more after the last commit', async () => {
  let asked: string[] = [];
  vi.stubGlobal('fetch', (request: Request) => {
    asked.push(new URL(request.url).pathname.split('/').at(-1) ?? '');
    return Promise.resolve(Response.json({ data: [], points: [], has_more: false }));
  });
  const client = new QueryClient({ defaultOptions: { queries: { networkMode: 'always' } } });
  const wrapper = ({ children }: PropsWithChildren) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  const usePage = (job: Job) => {
    useLastLook(job);
    useQuery(historyQuery(client, job.id, 15, isLive(job)));
    useQuery(snapshotsQuery(job.id, isLive(job)));
    useQuery(rejectedQuery(job.id, {}, null, isLive(job)));
    useQuery(logQuery(client, job.id, 'driver', isLive(job)));
  };
  const all = ['logs', 'metrics', 'rejected', 'snapshots'];
  const { rerender } = renderHook(usePage, { wrapper, initialProps: running });
  await waitFor(() => expect([...asked].sort()).toEqual(all));
  await waitFor(() => expect(client.isFetching()).toBe(0));
  asked = [];
  rerender(stopped);
  await waitFor(() => expect([...asked].sort()).toEqual(all));
  await waitFor(() => expect(client.isFetching()).toBe(0));
  // Once: nothing of a job that has ended changes.
  asked = [];
  rerender({ ...stopped });
  expect(asked).toEqual([]);
});
