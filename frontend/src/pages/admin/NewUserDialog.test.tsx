import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { queryClient } from '../../api/queryClient';
import { NewUserDialog } from './NewUserDialog';

test('a new user is created by a button that says so, with a password that is handed over', () => {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={queryClient}>
        <NewUserDialog onClose={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(screen.getByRole('button', { name: 'Create user' })).toBeDefined();
  expect(screen.getByText('8 characters at least. Give it to them; they can change it here')).toBeDefined();
});
