import { render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { Column } from '../api/types';
import { Rows } from './Rows';

const columns = [
  { name: 'at', type: 'timestamp' },
  { name: 'day', type: 'date' },
  { name: 'price', type: 'int64' },
  { name: 'seller', type: 'string' },
  { name: 'buyer', type: 'string' },
] as Column[];

test('texts share what times and numbers leave, so that neither are cut off nor the table is too wide', () => {
  render(<Rows label="Newest results" columns={columns} rows={[]} height={100} />);
  const { style } = screen.getByRole('table');
  expect([style.getPropertyValue('--whole'), style.getPropertyValue('--texts')]).toEqual(['76ch', '2']);
  expect(screen.getAllByRole('columnheader').map((head) => head.dataset.kind)).toEqual([
    'time',
    'time',
    'number',
    'text',
    'text',
  ]);
});
