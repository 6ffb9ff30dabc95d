import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { Events } from './Events';

const event = (id: string) => ({
  id,
  job_id: 'job_1',
  at: '2026-01-01T00:00:00Z',
  kind: 'job.running',
  severity: 'info',
  message: `what ${id} tells`,
  data: {},
  actor_id: null,
});

test('older events of a job are shown when they are asked for', async () => {
  vi.stubGlobal('fetch', (request: Request) => {
    const isFirst = new URL(request.url).searchParams.get('starting_after') === null;
    return Promise.resolve(Response.json({ data: [event(isFirst ? 'b' : 'a')], has_more: isFirst }));
  });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <Events id="job_1" />
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByText('what b tells');
  expect(screen.queryByText('what a tells')).toBeNull();
  fireEvent.click(screen.getByRole('button', { name: 'Show more' }));
  await screen.findByText('what a tells');
  expect(screen.getByText('what b tells')).toBeDefined();
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Show more' })).toBeNull());
});
