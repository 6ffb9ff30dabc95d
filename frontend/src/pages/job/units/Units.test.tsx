import { MantineProvider } from '@mantine/core';
import { render, screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { reportOf } from '../../../api/figures';
import { Units } from './Units';

test('each unit has its own figures where one came later than those of the other side', () => {
  const labels = ['R0', 'R1', 'S0', 'S1', 'R4'];
  const units = labels.map((label, unit) => ({ unit, label, received: (unit + 1) * 10 }));
  const report = reportOf({ at: null, span_s: 1, generation: 1, figures: { seconds: 1, units } });
  render(
    <MantineProvider env="test">
      <Units report={report} />
    </MantineProvider>,
  );
  const list = within(screen.getByRole('listbox', { name: 'Units' }));
  const cells = list.getAllByRole('option').map(({ children }) => [...children].map((part) => part.textContent));
  expect(cells).toEqual([
    ['R0', '10/s'],
    ['R1', '20/s'],
    ['R4', '50/s'],
    ['S0', '30/s'],
    ['S1', '40/s'],
  ]);
  expect(screen.getByRole('heading', { name: /^R4/ })).toBeDefined();
  expect(list.getByRole('option', { selected: true }).textContent).toBe('R450/s');
});

test('what units hand on, and how evenly they store, is shown where they do so', () => {
  const units = [{ unit: 0, label: 'W0' }];
  const chain = { units, seconds: 2, forwarded: { blocks: 4, tuples: 600, bytes: 4096 }, imbalance: { orders: 0.25 } };
  const reports = [chain, { units, seconds: 2 }].map((figures) =>
    reportOf({ at: null, span_s: 1, generation: 1, figures }),
  );
  const [told, silent] = reports.map((report) =>
    render(
      <MantineProvider env="test">
        <Units report={report} />
      </MantineProvider>,
    ),
  );
  const found = within(told!.container).getByRole('region', { name: 'From unit to unit' });
  const words = [...found.querySelectorAll('dl > div')].map(({ children }) => [...children].map((part) => part.textContent));
  expect(words).toEqual([
    ['Tuples', '300/s'],
    ['Blocks', '2/s'],
    ['Bytes', '2.0 KiB/s'],
    ['IF of orders', '0.250'],
  ]);
  expect(within(silent!.container).queryByRole('region', { name: 'From unit to unit' })).toBeNull();
});
