import { MantineProvider } from '@mantine/core';
import { fireEvent, render, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { formatRate } from '../../format';
import { planOf } from './plan';
import { WaysTable } from './WaysTable';
import { fieldsOfWay, workWords } from './ways';

const way = {
  plan: '(a, (b, c))',
  setting: 'tree: [a, [b, c]]',
  operator: { tree: ['a', ['b', 'c']] },
  runs: false,
  memory_bytes: 2048,
  comparisons_per_s: 798,
  looked_at_per_s: 20,
  bytes_per_s: 1024,
  work_s: 49.4e-6,
  rate_per_s: 7302,
  response_s: 0.00154,
};

test('ways to join streams are shown with what to write, and which one runs', () => {
  const ways = [way, { ...way, plan: '((a, b), c)', setting: 'tree: [[a, b], c]', runs: true, work_s: 0.25 }];
  const plan = planOf({ plan: { ways: { advice: 'operator: {tree: [a, [b, c]]} has 5%', ways } }, text: '', columns: [] });
  if (plan.ways === null) throw new Error('there are ways');
  const onTake = vi.fn();
  render(
    <MantineProvider>
      <WaysTable ways={plan.ways} onTake={onTake} />
    </MantineProvider>,
  );
  expect(screen.getByText('operator: {tree: [a, [b, c]]} has 5%')).toBeTruthy();
  const [, best, runs] = screen.getAllByRole('row');
  expect(best?.textContent).toContain('(a, (b, c))tree: [a, [b, c]]');
  expect(best?.textContent).toContain('49.4 µs/s');
  const cells = [...(best?.querySelectorAll('td') ?? [])].map((cell) => cell.textContent);
  expect(cells.at(-1)).toBe(`${formatRate(7302)}in 1.54 ms`);
  const heads = screen.getAllByRole('columnheader').map((head) => head.textContent);
  expect(heads.at(-1)).toBe('Takes');
  expect(cells).toHaveLength(heads.length);
  expect(best?.getAttribute('aria-current')).toBeNull();
  expect(runs?.textContent).toContain('((a, b), c), as it runs');
  expect(runs?.textContent).toContain('250 ms/s');
  expect(runs?.getAttribute('aria-current')).toBe('true');
  // What runs is not to be taken.
  const [take, ...others] = screen.getAllByRole('button');
  expect(others).toEqual([]);
  if (take === undefined) throw new Error('there is a way to take');
  expect(take.getAttribute('aria-label')).toBe('Take this way: (a, (b, c))');
  fireEvent.click(take);
  expect(onTake).toHaveBeenCalledExactlyOnceWith(plan.ways.found[0]);
});

test('a way is taken by the fields of a form', () => {
  expect(fieldsOfWay(way, 'matrix')).toEqual({
    'operator.name': 'matrix',
    'operator.tree': '[a, [b, c]]',
    'operator.orders': '',
  });
  const ring = { operator: { name: 'ring', orders: { b: ['c', 'a'] } } };
  expect(fieldsOfWay(ring, 'biclique')).toEqual({
    'operator.name': 'ring',
    'operator.tree': '',
    'operator.orders': '{"b":["c","a"]}',
  });
});

test('without ways there is nothing to show', () => {
  expect(planOf({ plan: { ways: null }, text: '', columns: [] }).ways).toBeNull();
  expect(planOf({ plan: {}, text: '', columns: [] }).ways).toBeNull();
  expect(workWords(12)).toBe('12.0 s/s');
});
