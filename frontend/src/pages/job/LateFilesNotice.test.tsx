import { MantineProvider } from '@mantine/core';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { reportOf } from '../../api/figures';
import { LateFilesNotice } from './LateFilesNotice';

afterEach(cleanup);

function show(figures: Record<string, unknown>) {
  render(
    <MantineProvider env="test">
      <LateFilesNotice report={reportOf({ at: null, span_s: 1, generation: 1, figures })} />
    </MantineProvider>,
  );
}

test('files that make rows late are named', () => {
  show({ late_files: { orders: 'files of orders are read in the order of their names, 10.csv before 2.csv' } });
  expect(screen.getByRole('alert').textContent).toContain('files of orders are read in the order of their names');
});

test.each([{}, { late_files: {} }, { late_files: null }])('nothing is shown if the report names no files: %s', (figures) => {
  show(figures);
  expect(screen.queryByRole('alert')).toBeNull();
});
