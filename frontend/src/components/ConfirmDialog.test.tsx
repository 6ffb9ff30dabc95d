import { MantineProvider } from '@mantine/core';
import { fireEvent, render, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { ConfirmDialog } from './ConfirmDialog';

const RECIPE = { curl: 'curl', cli: 'streamjoin jobs delete j', python: 'python' };

function shown(error: Error | null = null, isPending = false) {
  const [onConfirm, onClose] = [vi.fn(), vi.fn()];
  render(
    <MantineProvider env="test">
      <ConfirmDialog
        title="Delete wins?"
        act="Delete"
        recipe={RECIPE}
        what="delete this job"
        doing={{ error, isPending }}
        onConfirm={onConfirm}
        onClose={onClose}
      >
        Nobody can bring it back.
      </ConfirmDialog>
    </MantineProvider>,
  );
  return { onConfirm, onClose };
}

test('it asks, and keeping has the focus', async () => {
  const { onConfirm, onClose } = shown();
  expect(screen.getByRole('dialog', { name: 'Delete wins?' }).textContent).toContain('Nobody can bring it back.');
  const keep = screen.getByRole('button', { name: 'Keep it' });
  await waitFor(() => expect(document.activeElement).toBe(keep));
  fireEvent.click(keep);
  expect(onClose).toHaveBeenCalledOnce();
  expect(onConfirm).not.toHaveBeenCalled();
  fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  expect(onConfirm).toHaveBeenCalledOnce();
});

test('what went wrong stands in it', () => {
  shown(new Error('it is used by a job'));
  expect(screen.getByRole('alert').textContent).toContain('it is used by a job');
});

test('it is not done twice', () => {
  const { onConfirm } = shown(null, true);
  fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  expect(onConfirm).not.toHaveBeenCalled();
});
