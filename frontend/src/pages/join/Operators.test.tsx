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
  busiestBytesPerS: null,
  growth: null,
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

test.each([
  [{ slots: 2048, most: 'sending' }, '2,048'],
  [{ slots: null, most: 'reading' }, 'over 4,096'],
  [null, '-'],
])('costs stand below their heads, and the last one is how many slots are useful: %o', (growth, words) => {
  const known = { memoryBytes: 2048, replication: 2, comparisonsPerS: 3, bytesPerS: 4096, busiestBytesPerS: 1024, growth };
  render(
    <MantineProvider>
      <Operators options={[option('biclique', known)]} runs="biclique" chosen="auto" hasWays={false} onChoose={() => undefined} />
    </MantineProvider>,
  );
  const heads = screen.getAllByRole('columnheader').map((head) => head.textContent);
  const cells = [...(screen.getAllByRole('row').at(-1)?.querySelectorAll('td') ?? [])].map((cell) => cell.textContent);
  expect(heads.slice(-3)).toEqual(['Sent', 'To one unit', 'Useful slots']);
  expect(cells).toHaveLength(heads.length);
  expect(cells.slice(-3)).toEqual(['4.0 KiB/s', '1.0 KiB/s', words]);
});
