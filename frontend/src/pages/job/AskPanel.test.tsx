import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, fireEvent, render, screen } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';
import type { Job, QueryIn } from '../../api/types';
import { AskPanel } from './AskPanel';

const job = { id: 'job_1', name: 'wins', queries: {} } as unknown as Job;
const refusal = { type: '', code: 'invalid', status: 422, title: 'No', detail: 'no such column' };

/** A page of one column, with the cursor of the next one. */
const page = (values: number[], cursor: string | null) => ({
  schema: [{ name: 'price', type: 'int64' }],
  rows: values.map((value) => [value]),
  rows_given: values.length,
  cursor,
  truncated: cursor !== null,
  stopped_by: cursor === null ? null : 'limit',
  blocks_read: 1,
  blocks_stored: 1,
  last_snapshot: '7.0',
});

const asked: QueryIn[] = [];
let answers: Response[] = [];

beforeEach(() => {
  asked.length = 0;
  vi.stubGlobal('fetch', async (request: Request) => {
    asked.push((await request.json()) as QueryIn);
    return answers.shift() ?? Response.error();
  });
});

function shown(...bodies: object[]) {
  answers = bodies.map((body) => Response.json(body, { status: 'status' in body ? 422 : 200 }));
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <AskPanel job={job} />
      </QueryClientProvider>
    </MantineProvider>,
  );
}
const press = (name: string) => act(() => Promise.resolve(fireEvent.click(screen.getByRole('button', { name }))));
const isOff = (name: string) => screen.getByRole<HTMLButtonElement>('button', { name }).disabled;

test('a question that fails leaves the last answer where it is', async () => {
  shown(page([7, 8], null), refusal);
  await press('Ask');
  await screen.findByText(/^2 rows; read 1 of 1 blocks/);
  await press('Ask');
  await screen.findByText('no such column');
  expect(screen.getByText('The earlier answer is still shown below.')).toBeDefined();
  expect(screen.getByText(/^2 rows; read 1 of 1 blocks/)).toBeDefined();
  expect(screen.getByRole('region', { name: 'Answer' })).toBeDefined();
});

test('an answer that failed before its first row takes nothing away either', async () => {
  shown(page([7, 8], null), { ...page([], null), truncated: true, stopped_by: 'error', error: refusal });
  await press('Ask');
  await screen.findByText(/^2 rows/);
  await press('Ask');
  await screen.findByText('no such column');
  expect(screen.getByText(/^2 rows/)).toBeDefined();
});

test('a page after another is what follows in the same answer, whatever is typed meanwhile', async () => {
  shown(page([1, 2], 'c1'), page([3, 4], 'c2'), page([5], null));
  fireEvent.change(screen.getByLabelText('Where'), { target: { value: 'price > 0' } });
  await press('Ask');
  await screen.findByText(/^2 rows, and there are more/);
  expect(isOff('Previous page')).toBe(true);
  fireEvent.change(screen.getByLabelText('Where'), { target: { value: 'price > 1000' } });
  await press('Next page');
  await screen.findByText(/^rows 3 to 4, and there are more/);
  await press('Next page');
  await screen.findByText(/^row 5; read/);
  expect(isOff('Next page')).toBe(true);
  const question = { job: 'wins', limit: 200, where: 'price > 0', format: 'json' };
  expect(asked).toEqual([question, { ...question, cursor: 'c1' }, { ...question, cursor: 'c2' }]);
  await press('Previous page');
  await screen.findByText(/^rows 3 to 4/);
  expect(asked).toHaveLength(3);
});

test('a next page that is refused leaves this one, and can be asked for again', async () => {
  shown(page([1, 2], 'c1'), refusal, page([3], null));
  await press('Ask');
  await screen.findByText(/^2 rows, and/);
  await press('Next page');
  await screen.findByText('no such column');
  expect(screen.getByText(/^2 rows, and/)).toBeDefined();
  await press('Next page');
  await screen.findByText(/^row 3;/);
  expect(screen.queryByText('no such column')).toBeNull();
});
