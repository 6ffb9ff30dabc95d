import { MantineProvider } from '@mantine/core';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { reportOf } from '../../api/figures';
import { StorePanel, trafficOf } from './StorePanel';

afterEach(cleanup);

const reported = (state_traffic: unknown, seconds = 1) =>
  reportOf({ at: null, span_s: 1, generation: 1, figures: { state_traffic, seconds, quiet_seconds: 1 } });

const MIB = 2 ** 20;

function show(...told: unknown[]) {
  render(
    <MantineProvider env="test">
      <StorePanel reports={told.map((one) => reported(one))} span="last 5 minutes" />
    </MantineProvider>,
  );
}

test('what was written and fetched in a second, and how much the cache spared', () => {
  show({ put: 3, put_bytes: 6 * MIB, fetched: 1, fetched_bytes: MIB, served: 5, retries: 0 }, undefined, {
    put: 1,
    put_bytes: 2 * MIB,
    served: 2,
    retries: 2,
  });
  expect(screen.getByText('2.0 MiB/s')).toBeTruthy();
  expect(screen.getByText('4 objects')).toBeTruthy();
  expect(screen.getByText('88 %')).toBeTruthy();
  expect(screen.getByText('of 8 openings')).toBeTruthy();
  expect(screen.getByText('the store failed, or gave what was damaged')).toBeTruthy();
});

test('nothing of jobs whose state is in a folder, and nothing divided by none', () => {
  show(undefined, null);
  expect(screen.queryByText('State in the store')).toBeNull();
  expect(trafficOf([])).toBeNull();
  show({});
  expect(screen.getByText('–')).toBeTruthy();
  expect(screen.getByText('the store never failed')).toBeTruthy();
});
