import { MantineProvider } from '@mantine/core';
import { fireEvent, render, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { CopyAs } from './CopyAs';

test('copy buttons say what they copy, and tell that they did', async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } });
  render(
    <MantineProvider env="test">
      <CopyAs recipe={{ curl: 'curl x', cli: 'streamjoin x', python: 'x()' }} what="stop this job" />
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Copy as curl, command line or Python: stop this job' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Copy as command line' }));
  await screen.findByText('Copied as command line', { selector: '[role=status]' });
  expect(writeText).toHaveBeenCalledWith('streamjoin x');
});
