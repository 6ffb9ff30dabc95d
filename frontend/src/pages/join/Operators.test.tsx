import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { Operators } from './Operators';
import type { Option } from './plan';

const option = (name: string, changed: Partial<Option>): Option => ({
  name,
  refusal: null,
  memoryBytes: null,
  replication: null,
  comparisonsPerS: null,
  bytesPerS: null,
  reading: null,
  ...changed,
});

test('an operator without costs shows why it cannot run, or what it reads, or that nothing is known', () => {
  const options = [
    option('biclique', { refusal: 'it joins streams', reading: 'never shown' }),
    option('ssbj', { reading: '62% of o from the cache' }),
    option('lookup', {}),
  ];
  render(
    <MantineProvider>
      <Operators options={options} runs="lookup" chosen="auto" hasWays={false} onChoose={() => undefined} />
    </MantineProvider>,
  );
  const cells = screen.getAllByRole('row').slice(2).map((row) => row.textContent);
  expect(cells).toEqual([
    expect.stringContaining('it joins streams'),
    expect.stringContaining('62% of o from the cache'),
    expect.stringContaining('its costs are not known before'),
  ]);
  expect(screen.queryByText('never shown')).toBeNull();
});
