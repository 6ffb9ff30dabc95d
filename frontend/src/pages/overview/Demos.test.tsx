import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render, screen, waitFor } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { expect, test, vi } from 'vitest';
import { meQuery } from '../../api/queries';
import type { Demo, Me } from '../../api/types';
import { Demos } from './Demos';

const IDLE: Demo = { name: 'band', title: 'Bands', text: 'ranges', query: 'SELECT', job_id: null, owner_id: null };
const MINE: Demo = { ...IDLE, name: 'skew', title: 'Skewed', job_id: 'job_1', owner_id: 'u1' };
const OTHERS: Demo = { ...IDLE, name: 'sellers', title: 'Sellers', job_id: 'job_2', owner_id: 'u2' };

function shown(role: string) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(meQuery.queryKey, { id: 'u1', name: 'me', role, key_id: null } as Me);
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <MemoryRouter>
          <Demos demos={[IDLE, MINE, OTHERS]} />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

const buttons = (name: RegExp) => screen.queryAllByRole('button', { name }).map((button) => button.ariaLabel);

test.each([
  ['viewer', [], []],
  ['operator', ['Start: Bands'], ['Remove: Skewed']],
  ['admin', ['Start: Bands'], ['Remove: Skewed', 'Remove: Sellers']],
])('a %s is offered what the platform would do', (role, starts, removes) => {
  shown(role);
  expect(buttons(/^Start: /)).toEqual(starts);
  expect(buttons(/^Remove: /)).toEqual(removes);
  expect(screen.getAllByRole('link', { name: /^Open its job/ })).toHaveLength(2);
});

test('one is removed after a question', async () => {
  const asked: string[] = [];
  vi.stubGlobal('fetch', ({ method, url }: Request) => {
    asked.push(`${method} ${new URL(url).pathname}`);
    return Promise.resolve(new Response(null, { status: 204 }));
  });
  shown('operator');
  fireEvent.click(screen.getByRole('button', { name: 'Remove: Skewed' }));
  expect(screen.getByRole('dialog', { name: 'Remove Skewed?' }).textContent).toContain('that nobody else uses');
  expect(asked).toEqual([]);
  fireEvent.click(screen.getByRole('button', { name: 'Remove' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(asked).toEqual(['DELETE /api/v1/demos/skew']);
});
