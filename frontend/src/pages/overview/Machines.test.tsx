import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import type { Machine } from '../../api/types';
import { Machines } from './Machines';

const LEFT: Machine = {
  name: 'left',
  takes_jobs: true,
  jobs: 2,
  free_bytes: 3 * 2 ** 30,
  folder: 'a',
  seen_at: new Date().toISOString(),
};
const RIGHT: Machine = { ...LEFT, name: 'right', takes_jobs: false, jobs: 0, folder: 'b' };

const shown = (machines: readonly Machine[]) =>
  render(
    <MantineProvider>
      <Machines machines={machines} />
    </MantineProvider>,
  );

it('says which machines take jobs, and which are silent', () => {
  shown([LEFT, RIGHT]);
  expect(screen.getByText('1 of 2 take jobs')).toBeTruthy();
  expect(screen.getByRole('row', { name: /^left 2 3\.0 GiB takes jobs$/ })).toBeTruthy();
  expect(screen.getByRole('row', { name: /^right 0 – silent, heard of / })).toBeTruthy();
});

it('says nothing where there is one', () => {
  shown([LEFT]);
  expect(screen.queryByText('Machines')).toBeNull();
});
