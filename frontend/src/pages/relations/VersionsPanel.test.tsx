import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, expect, test } from 'vitest';
import { jobRelationsQuery } from '../../api/queries';
import type { RelationInJob } from '../../api/types';
import { RelationsOfJob } from './VersionsPanel';

afterEach(cleanup);

const RATES: RelationInJob = {
  relation: 'rates',
  job_id: 'job_1',
  job: 'named',
  phase: 'running',
  refresh: '10min',
  refreshes: 1,
  refresh_failures: 0,
  problem: null,
  looked_at: null,
  reading_version: null,
  reading_rows: null,
  versions: [],
};

function show(of: Partial<RelationInJob>) {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(jobRelationsQuery('job_1').queryKey, { data: [{ ...RATES, ...of }] });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <MemoryRouter>
          <RelationsOfJob id="job_1" />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

test('how far a version is that is being read', () => {
  show({ reading_version: 3, reading_rows: 1_200_000 });
  expect(screen.getByRole('status').textContent).toBe('Reading version 3: 1,200,000 rows so far');
});

test('nothing of it where none is', () => {
  show({});
  expect(screen.queryByRole('status')).toBeNull();
  expect(screen.getByText('Nothing was read yet.')).toBeTruthy();
});
