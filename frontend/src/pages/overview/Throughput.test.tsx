import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { queryClient } from '../../api/queryClient';
import type { Job } from '../../api/types';
import { Throughput } from './Throughput';

const shown = (count: number) => {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ points: [] })));
  const running = Array.from({ length: count }, (_, place) => ({ id: `job_${String(place)}` }) as Job);
  render(
    <MantineProvider>
      <QueryClientProvider client={queryClient}>
        <Throughput running={running} />
      </QueryClientProvider>
    </MantineProvider>,
  );
};

it('says that its figures are of all running jobs where they are', () => {
  shown(20);
  expect(screen.getAllByText('all running jobs').length).toBe(2);
});

it('says of which jobs its figures are where there are more', () => {
  shown(21);
  expect(screen.getAllByText('the newest 20 running jobs').length).toBe(2);
  expect(screen.queryByText('all running jobs')).toBeNull();
});
