import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import type { Job } from '../../api/types';
import { BeginAnew } from './BeginAnew';

const job = { id: 'job_1', name: 'wins', version: 3 } as unknown as Job;
const drops = { state_at: '2026-11-28T20:00:00.000Z', results: 1250, could_go_on: true };

function shown(answer: unknown, status = 200) {
  const sent: [string, string][] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    sent.push([request.method, await request.text()]);
    return Response.json(answer, { status });
  });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <BeginAnew job={job} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Begin anew…' }));
  return sent;
}

const PATCHES = ([method]: [string, string]) => method === 'PATCH';

test('nothing is dropped before it was told what, and that the job could go on', async () => {
  const sent = shown({ changes: [], starts_anew: true, drops });
  const dialog = screen.getByRole('dialog', { name: 'Begin wins anew?' });
  const drop = screen.getByRole('button', { name: 'Drop it, and begin anew' });
  fireEvent.click(drop);
  await waitFor(() => expect(dialog.textContent).toContain('The state of 2026-11-28 20:00:00.000 UTC is dropped'));
  expect(dialog.textContent).toContain('1,250 results');
  expect(dialog.textContent).toContain('The job could go on with it');
  expect(sent.filter(PATCHES)).toEqual([]);
  fireEvent.click(drop);
  await waitFor(() => expect(sent.filter(PATCHES)).toEqual([['PATCH', '{"start_anew":true}']]));
});

test('what cannot be looked at cannot be dropped', async () => {
  const wrong = { type: '', title: 'no', status: 503, code: 'unavailable', detail: 'no answer', errors: [] };
  const sent = shown(wrong, 503);
  await waitFor(() => expect(screen.getByRole('alert').textContent).toContain('no answer'));
  fireEvent.click(screen.getByRole('button', { name: 'Drop it, and begin anew' }));
  expect(sent.filter(PATCHES)).toEqual([]);
});
