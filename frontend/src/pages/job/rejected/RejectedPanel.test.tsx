import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, fireEvent, render, screen, within } from '@testing-library/react';
import axe from 'axe-core';
import { beforeEach, expect, test, vi } from 'vitest';
import type { Job, RejectedCount, RejectedRow } from '../../../api/types';
import { RejectedPanel } from './RejectedPanel';

const job = { id: 'job_1', name: 'wins', wanted: 'stopped', observed: 'stopped' } as unknown as Job;

const row = (id: string, record: string): RejectedRow => ({
  id,
  stream: 'bids',
  reason: 'bad_value',
  batch: 7,
  at: '2026-01-01T00:00:00.000000Z',
  source: 'a/1.csv',
  unit: 'line',
  position: 3,
  detail: 'field "id": the text is no int64',
  record,
  record_base64: null,
  truncated: false,
});
const COUNTS: RejectedCount[] = [
  { stream: 'bids', reason: 'bad_value', rows: 1_200, kept: 120, meaning: 'a value does not fit its column' },
  { stream: 'asks', reason: 'late', rows: 9, kept: 0, meaning: 'older than the watermark' },
];
const page = (rows: RejectedRow[], has_more = false, counts = COUNTS) => ({ data: rows, has_more, counts });

const asked: string[] = [];
let answers: object[] = [];

beforeEach(() => {
  asked.length = 0;
  vi.stubGlobal('fetch', (request: Request) => {
    asked.push(new URL(request.url).search);
    const body = answers.shift() ?? { type: '', code: 'unavailable', status: 503, title: 'No', detail: 'kept.json is damaged' };
    return Promise.resolve(Response.json(body, { status: 'status' in body ? 503 : 200 }));
  });
});

function shown(...bodies: object[]) {
  answers = bodies;
  return render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <RejectedPanel job={job} />
      </QueryClientProvider>
    </MantineProvider>,
  );
}
const press = (name: string | RegExp) =>
  act(() => Promise.resolve(fireEvent.click(screen.getByRole('button', { name }))));
const texts = () => 
  [...screen.getByRole('table', { name: 'Rejected rows' }).querySelectorAll('code')].map((code) => code.textContent);

test('a job that misses nothing says so', async () => {
  shown(page([], false, []));
  await screen.findByText('No row is missing');
  expect(screen.queryByRole('table')).toBeNull();
});

test('counts come by stream and reason, and rows with their place and why', async () => {
  shown(page([row('1-0', '{"id":')]));
  await screen.findByText('{"id":');
  const counts = within(screen.getByRole('table', { name: 'Rejected rows by stream and reason' })).getAllByRole('row');
  expect(counts.map((one) => one.textContent)).toEqual([
    'StreamReasonMeaningRowsKeptShow',
    'bidsbad_valuea value does not fit its column1,200120Only these',
    'askslateolder than the watermark90counted only',
  ]);
  expect(screen.getByText('a/1.csv, line 3')).toBeDefined();
  expect(screen.getByText('1,209 rows over all runs, each counted once')).toBeDefined();
  expect(screen.getByText('field "id": the text is no int64')).toBeDefined();
});

test('a next page goes on after the last row, and a page before it is there again', async () => {
  shown(page([row('1-90', 'c'), row('1-50', 'b')], true), page([row('1-0', 'a')]));
  await screen.findByText('c');
  await press('Next page');
  await screen.findByText('a');
  expect(texts()).toEqual(['a']);
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Next page' }).disabled).toBe(true);
  expect(screen.getByText('120 kept, newest first; page 2')).toBeDefined();
  await press('Previous page');
  await screen.findByText('c');
  expect(asked.slice(0, 2)).toEqual(['?limit=50', '?limit=50&starting_after=1-50']);
});

test('a choice begins at the first page, and the download has the same', async () => {
  shown(page([row('1-50', 'b')], true), page([row('1-0', 'a')]), page([row('1-50', 'only')]));
  await screen.findByText('b');
  await press('Next page');
  await screen.findByText('a');
  await press('Only these: bad_value rows of bids');
  await screen.findByText('only');
  expect(asked[2]).toBe('?stream=bids&reason=bad_value&limit=50');
  expect(screen.getByRole('link', { name: 'Download CSV' }).getAttribute('href')).toMatch(
    /\/api\/v1\/jobs\/job_1\/rejected\/download\?stream=bids&reason=bad_value&format=csv$/,
  );
  expect(screen.getByRole<HTMLSelectElement>('combobox', { name: 'Reason' }).value).toBe('bad_value');
});

test('what is only counted has no rows, and that is said', async () => {
  shown(page([row('1-0', 'a')]), page([]));
  await screen.findByText('a');
  fireEvent.change(screen.getByLabelText('Reason'), { target: { value: 'late' } });
  await screen.findByText('No such row is kept');
  expect(asked[1]).toBe('?reason=late&limit=50');
});

test('attack: a text is text, and a long one is seen whole on demand', async () => {
  const image = '<img src=x onerror="document.title=1">';
  const long = `${'x'.repeat(200)}\nend`;
  const { container } = shown(page([row('1-90', image), row('1-50', long)]));
  await screen.findByText(image);
  expect(container.querySelector('img')).toBeNull();
  expect(texts()[1]).toBe(`${'x'.repeat(120)}…`);
  await press(/^Show all of the text at a\/1\.csv/);
  expect(texts()[1]).toBe(long);
  await press(/^Show less of the text/);
  expect(texts()[1]).toHaveLength(121);
});

test('a page that cannot be read leaves the one before', async () => {
  shown(page([row('1-0', 'a')], true));
  await screen.findByText('a');
  await press('Next page');
  await screen.findByText('kept.json is damaged');
  expect(texts()).toEqual(['a']);
  expect(screen.getByText('What was read before is still shown below.')).toBeDefined();
});

test('nothing stands in the way of a screen reader', async () => {
  const { container } = shown(page([row('1-0', 'x'.repeat(200))], true));
  await screen.findByText(/^xxx/);
  const { violations } = await axe.run(container, { rules: { 'color-contrast': { enabled: false } } });
  expect(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)])).toEqual([]);
});
