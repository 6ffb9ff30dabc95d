import { MantineProvider } from '@mantine/core';
import { QueryClientProvider, focusManager } from '@tanstack/react-query';
import { act, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { queryClient } from '../api/queryClient';
import { live } from '../live/shared';
import { App } from './App';

type Answer = (response: Response) => void;

/** Who asks who is there waits in `asked` until a test answers; everything else is never answered. */
const asked: Answer[] = [];
const problem = { code: 'unauthenticated', title: '', detail: 'nobody is signed in', status: 401 };
const nobody = () => new Response(JSON.stringify(problem), { status: 401 });
const vera = () => new Response(JSON.stringify({ id: 'usr_1', name: 'vera', role: 'admin', key_id: null }));

function shown() {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={queryClient}>
        <MemoryRouter initialEntries={['/nowhere']}>
          <App />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

async function answer(response: Response) {
  await waitFor(() => expect(asked).not.toHaveLength(0));
  await act(() => Promise.resolve(asked.shift()?.(response)));
}
const look = (name: string) => screen.findByLabelText<HTMLInputElement>(name, { selector: 'input', exact: false });
const windowShown = () => act(() => (focusManager.setFocused(false), focusManager.setFocused(true)));

beforeEach(() => {
  vi.spyOn(live, 'retry').mockReturnValue(undefined);
  vi.stubGlobal('fetch', (request: Request) => {
    if (request.url.endsWith('/api/v1/sessions')) return Promise.resolve(vera());
    return new Promise<Response>((resolve) => request.url.endsWith('/users/me') && asked.push(resolve));
  });
});

afterEach(() => {
  vi.useRealTimers();
  focusManager.setFocused(undefined);
  queryClient.clear();
  asked.length = 0;
});

test('what a stranger has typed stays, whatever is asked meanwhile', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  shown();
  await answer(nobody());
  fireEvent.change(await look('Name'), { target: { value: 'vera' } });
  await act(() => vi.advanceTimersByTimeAsync(10_000));
  windowShown();
  expect((await look('Name')).value).toBe('vera');
  await answer(nobody());
  expect((await look('Name')).value).toBe('vera');
});

test('who signs in elsewhere is in when this window is looked at again', async () => {
  shown();
  await answer(nobody());
  await look('Name');
  windowShown();
  await answer(vera());
  await screen.findByTitle('Sign out vera');
});

test('an answer from before the login does not end it', async () => {
  shown();
  await answer(nobody());
  fireEvent.change(await look('Name'), { target: { value: 'vera' } });
  fireEvent.change(await look('Password'), { target: { value: 'a password' } });
  windowShown();
  fireEvent.click(screen.getByRole('button', { name: 'Sign in' }));
  await screen.findByTitle('Sign out vera');
  await answer(nobody());
  await waitFor(() => expect(queryClient.isFetching({ queryKey: ['me'] })).toBe(0));
  expect(screen.getByTitle('Sign out vera')).toBeDefined();
});
