import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { expect, it, vi } from 'vitest';
import { queryClient } from '../../api/queryClient';
import type { Job, SavedQuery } from '../../api/types';
import { SavedTable } from './SavedTable';

const kept = (job: string): SavedQuery => ({
  id: job,
  name: `of ${job}`,
  question: { job },
  owner_id: null,
  created_at: new Date().toISOString(),
});

const shown = (job: string) => {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ id: null })));
  const nothing = () => undefined;
  render(
    <MantineProvider>
      <QueryClientProvider client={queryClient}>
        <MemoryRouter>
          <SavedTable
            saved={[kept(job)]}
            jobs={[{ id: 'job_1', name: 'wins' } as Job]}
            asking={null}
            writing={null}
            onAsk={nothing}
            onExport={nothing}
            onForget={nothing}
          />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
};

it('knows the job of a query beside its own', () => {
  shown('wins:cheap');
  expect(screen.getByRole('link', { name: 'wins' }).getAttribute('href')).toBe('/jobs/job_1?tab=ask');
  expect(screen.getByText('cheap')).toBeTruthy();
  expect(screen.queryByText('is gone')).toBeNull();
});

it('says that a job is gone', () => {
  shown('other:cheap');
  expect(screen.getByText('is gone')).toBeTruthy();
});
