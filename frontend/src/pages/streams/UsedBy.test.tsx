import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { expect, test, vi } from 'vitest';
import { UsedBy } from './UsedBy';

const job = (name: string, reason: string | null) => ({
  id: `job_${name}`,
  name,
  streams: ['r', 's'],
  phase: 'stopped',
  observed: 'stopped',
  reason,
});

test('a job that has reached the end of its streams is finished here, too', async () => {
  const jobs = [job('done', 'reached the end'), job('idle', null), { ...job('other', null), streams: ['x'] }];
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ data: jobs, has_more: false })));
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <MemoryRouter>
          <UsedBy stream="r" />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByRole('link', { name: 'done' });
  expect(screen.getAllByRole('listitem').map((item) => item.textContent)).toEqual(['donefinished', 'idlestopped']);
});
