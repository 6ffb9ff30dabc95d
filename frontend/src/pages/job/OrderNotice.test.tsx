import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { reportOf } from '../../api/figures';
import { OrderNotice } from './OrderNotice';

afterEach(cleanup);

const better = {
  plan: '(a, (b, c))',
  setting: 'tree: [a, [b, c]]',
  operator: { name: 'biclique', tree: ['a', ['b', 'c']] },
  times: 1.6,
};

const reported = (order: unknown) =>
  reportOf({ at: null, span_s: 1, generation: 1, figures: { order } });

function show(order: unknown, onTake: ((fields: Record<string, string>) => void) | null) {
  render(
    <MantineProvider env="test">
      <OrderNotice report={reported(order)} onTake={onTake} />
    </MantineProvider>,
  );
}

test('a better order is shown with the change that switches to it', () => {
  const onTake = vi.fn();
  show({ plan: '((a, b), c)', text: '((a, b), c) was chosen for 1,000 a/s; at today\'s 40,000', better }, onTake);
  expect(screen.getByRole('status').textContent).toContain('Another order of joins has less work by now: (a, (b, c))');
  expect(screen.getByRole('status').textContent).toContain('was chosen for 1,000 a/s; at today\'s 40,000. State is of one');
  fireEvent.click(screen.getByRole('button', { name: 'Change to this order' }));
  expect(onTake).toHaveBeenCalledExactlyOnceWith({
    'operator.name': 'biclique',
    'operator.tree': '[a, [b, c]]',
    'operator.orders': '',
  });
});

test('who may not change the job reads it without a button', () => {
  show({ text: 'then and now', better }, null);
  expect(screen.getByText(/then and now/)).toBeTruthy();
  expect(screen.queryByRole('button')).toBeNull();
});

test.each([undefined, null, { text: 'no other order is clearly better', better: null }])(
  'shows nothing when no order is better: %s',
  (order) => {
    show(order, () => undefined);
    expect(screen.queryByRole('status')).toBeNull();
  },
);
