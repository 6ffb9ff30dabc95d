import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, expect, it, vi } from 'vitest';
import { queryClient } from '../../api/queryClient';
import type { Job } from '../../api/types';
import { ComparePage } from './ComparePage';

vi.mock('./CompareView', () => ({
  CompareView: ({ job, queryAtFirst }: { job?: Job; queryAtFirst: string }) => (
    <p>{`${job?.name ?? 'no job'}: ${queryAtFirst}`}</p>
  ),
}));

const OLD = { id: 'job_1', name: 'old', phase: 'running', query: 'SELECT ONLINE old', operator: { name: 'auto', ordering: 'none' }, run: {} };

function reply(path: string): Response {
  if (path.endsWith('/jobs')) return Response.json({ data: [], has_more: true });
  if (path.endsWith('/jobs/job_1')) return Response.json(OLD);
  if (path.endsWith('/config')) return Response.json({});
  return Response.json({ code: 'not_found', status: 404, title: 'Not found', detail: 'no' }, { status: 404 });
}

const shown = (job: string) => {
  vi.stubGlobal('fetch', (request: Request) => Promise.resolve(reply(new URL(request.url).pathname)));
  render(
    <MantineProvider>
      <QueryClientProvider client={queryClient}>
        <MemoryRouter initialEntries={[`/compare?job=${job}`]}>
          <ComparePage />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
};

afterEach(() => queryClient.clear());

it('compares a job that the list leaves out', async () => {
  shown('job_1');
  expect(await screen.findByText('old: SELECT ONLINE old')).toBeTruthy();
  expect(screen.queryByText('That job is gone')).toBeNull();
});

it('says that a job is gone', async () => {
  shown('job_2');
  expect(await screen.findByText('That job is gone')).toBeTruthy();
  expect(screen.getByText(/^no job: SELECT/)).toBeTruthy();
});
