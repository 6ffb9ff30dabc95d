import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, render, screen, waitFor } from '@testing-library/react';
import { MemoryRouter, Route, Routes } from 'react-router';
import { expect, test, vi } from 'vitest';
import { jobQuery, meQuery } from '../../api/queries';
import type { Me } from '../../api/types';
import { JobPage } from './JobPage';

const job = {
  id: 'job_1',
  name: 'wins',
  query: 'SELECT',
  queries: {},
  streams: ['r', 's'],
  phase: 'running',
  wanted: 'running',
  observed: 'running',
  observed_since: '2026-01-01T00:00:00Z',
  reason: null,
  generation: 1,
  failures: 0,
  last_run: null,
  operator: {},
  results: {},
  run: {},
  last_start: { generation: 1, at: null, cause: 'start', warm: false, seconds: 3.1, steps: { launch: 0.4 } },
};

let answers: () => Promise<Response> = () => Promise.resolve(Response.json(job));

function shown(address: string) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, networkMode: 'always' } } });
  client.setQueryData(meQuery.queryKey, { id: null, name: '', role: 'admin', key_id: null } as Me);
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <MemoryRouter initialEntries={[address]}>
          <Routes>
            <Route path="/jobs/:id" element={<JobPage />} />
          </Routes>
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return client;
}

test('when the platform is out of reach the header says so, and since when; and goes back by itself', async () => {
  vi.stubGlobal('fetch', (request: Request) =>
    new URL(request.url).pathname.endsWith('/jobs/job_1') ? answers() : new Promise(() => undefined),
  );
  const client = shown('/jobs/job_1?tab=definition');
  const heading = await screen.findByRole('heading', { name: 'wins' });
  const page = heading.closest('[data-lost]');
  expect(page?.getAttribute('data-lost')).toBe('false');
  expect(screen.getByText(/^for /)).toBeDefined();
  expect(screen.getByText('Last start: 3.1 s (launch 400 ms)')).toBeDefined();

  answers = () => Promise.reject(new TypeError('Failed to fetch'));
  await act(() => client.refetchQueries({ queryKey: jobQuery('job_1').queryKey, exact: true }));
  expect(await screen.findByText(/^connection lost, figures from \d\d:\d\d:\d\d$/)).toBeDefined();
  expect(page?.getAttribute('data-lost')).toBe('true');
  expect(screen.queryByText(/^for /)).toBeNull();

  answers = () => Promise.resolve(Response.json(job));
  await act(() => client.refetchQueries({ queryKey: jobQuery('job_1').queryKey, exact: true }));
  await waitFor(() => expect(screen.queryByText(/^connection lost/)).toBeNull());
  expect(page?.getAttribute('data-lost')).toBe('false');
});

test('what is asked again only while the job runs is asked once more when it has ended', async () => {
  const asked: string[] = [];
  answers = () => Promise.resolve(Response.json(job));
  vi.stubGlobal('fetch', (request: Request) => {
    const path = new URL(request.url).pathname;
    asked.push(path.split('/').at(-1) ?? '');
    if (path.endsWith('/jobs/job_1')) return answers();
    return Promise.resolve(Response.json({ status: 500, title: 'down', code: 'internal' }, { status: 500 }));
  });
  const client = shown('/jobs/job_1?tab=rejected');
  const count = () => asked.filter((path) => path === 'rejected').length;
  await waitFor(() => expect(count()).toBe(1));
  const reason = 'reached the end';
  answers = () => Promise.resolve(Response.json({ ...job, phase: 'stopped', wanted: 'stopped', observed: 'stopped', reason }));
  await act(() => client.refetchQueries({ queryKey: jobQuery('job_1').queryKey, exact: true }));
  await screen.findByText('finished');
  await waitFor(() => expect(count()).toBe(2));
});
