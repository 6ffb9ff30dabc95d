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
