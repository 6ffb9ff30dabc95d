import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { queryClient } from '../../api/queryClient';
import { NewKeyDialog } from './NewKeyDialog';

const ME = { id: 'usr_1', name: 'vera', role: 'admin', key_id: null } as const;

test('a key that was not copied does not count as copied: it is shown this once', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ id: 'key_1', name: 'nightly', key: 'sj_secret' })));
  vi.stubGlobal('navigator', { ...navigator, clipboard: undefined });
  document.execCommand = () => false;
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={queryClient}>
        <NewKeyDialog me={ME} onClose={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  const name = screen.getByLabelText('Name', { exact: false, selector: 'input' });
  fireEvent.change(name, { target: { value: 'nightly' } });
  fireEvent.click(screen.getByRole('button', { name: 'Create key' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Copy the key' }));
  expect((await screen.findByRole('alert')).textContent).toMatch(/^The browser refused to copy it/);
  expect(screen.queryByRole('button', { name: 'Copied' })).toBeNull();
});

test("a key may first do what its owner may, and nobody's more", () => {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={queryClient}>
        <NewKeyDialog me={{ ...ME, role: 'operator' }} onClose={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  const roles = screen.getAllByRole<HTMLInputElement>('radio');
  expect(roles.filter(({ checked }) => checked).map(({ value }) => value)).toEqual(['operator']);
  expect(roles.map(({ value }) => value)).not.toContain('admin');
});
