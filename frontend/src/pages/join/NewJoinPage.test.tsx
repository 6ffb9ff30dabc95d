import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { beforeEach, expect, test, vi } from 'vitest';
import { queryClient } from '../../api/queryClient';
import type { Draft, Me } from '../../api/types';
import { EMPTY, keepDraft, keptDraft } from './draft';
import { NewJoinPage } from './NewJoinPage';

const QUERY = 'SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 10 SECONDS';
const stream = (name: string) => ({ id: name, name, spec });
const mistake = { pointer: '/query', detail: 'there is no column r.kk', span: { line: 1, column: 15 } };
const times = { first: '2026-01-01T00:00:00Z', last: '2026-01-01T00:01:00Z' };
const looked = { rows: 20_000, bad_records: 3, large_rows: 0, ...times };

/** What is asked, by the end of its address. */
let asked: [path: string, body: Draft & { name?: string }][] = [];
let plan: Record<string, unknown> = {};
let rows: unknown[][] = [];
let refusal: Response | null = null;
/** A query with this in it is wrong. */
let wrongPart = '';
let isDown = false;
let spec: object = { source: 'push', time: 'ts' };

function answerOf(path: string, body: Draft): object {
  const columns = ['k', 'ts'].map((name) => ({ name, type: 'int64' }));
  if (path.endsWith('/streams')) return { data: [stream('s'), stream('r')], has_more: false };
  if (path.endsWith('/relations')) return { data: [], has_more: false };
  if (path.endsWith('/sample')) return { columns, rows: [], bad_records: {}, skew: {} };
  if (path.endsWith('/validate')) {
    const slots = body.run?.slots;
    if (slots === 0) return { valid: false, diagnostics: [{ pointer: '/run/slots', detail: 'is 1 or more' }], columns };
    const isWrong = body.query.includes(wrongPart);
    return { valid: !isWrong, diagnostics: isWrong ? [mistake] : [], columns, summary: 'r joins s' };
  }
  if (path.endsWith('/explain')) {
    return { plan: { operator: 'biclique', reason: 'auto', operators: [], ...plan }, text: '', columns };
  }
  if (path.endsWith('/preview')) {
    const reason = rows.length > 0 ? null : 'no value of r.k is among those of s.k';
    const streams = ['r', 's'].map((name) => ({ name, ...looked }));
    const queries = [{ query: '', columns, rows, large_rows: 0, reason }];
    return { note: '', text: '', streams, cut_off: false, queries };
  }
  return { id: 'job_1', name: 'wins' };
}

beforeEach(() => {
  sessionStorage.clear();
  queryClient.clear();
  asked = [];
  plan = {};
  rows = [
    [7, 1],
    [8, 2],
  ];
  refusal = null;
  wrongPart = 'kk';
  isDown = false;
  spec = { source: 'push', time: 'ts' };
  vi.stubGlobal('fetch', async (request: Request) => {
    const path = new URL(request.url).pathname;
    const body = (request.method === 'POST' ? JSON.parse((await request.text()) || '{}') : {}) as Draft;
    asked.push([path.split('/').at(-1) ?? '', body]);
    if (isDown && path.endsWith('/validate')) return Response.json({ status: 500, title: 'down' }, { status: 500 });
    if (path.endsWith('/preview') && refusal !== null) {
      const answer = refusal;
      refusal = null;
      return answer;
    }
    return Response.json(answerOf(path, body));
  });
});

function shown(role: Me['role'] = 'admin', id: string | null = 'usr_1') {
  cleanup();
  queryClient.setQueryData(['me'], { id, name: 'vera', role, key_id: null });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={queryClient}>
        <MemoryRouter initialEntries={['/jobs/new']}>
          <NewJoinPage />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

/** As somebody left it: jsdom has no layout for the editor to be typed into. */
const typed = (query: string, more: Partial<typeof EMPTY> = {}) =>
  keepDraft('usr_1', { ...EMPTY, name: 'wins', query, ...more });
const create = () => screen.getByRole<HTMLButtonElement>('button', { name: /^Create/ });
const createdWhy = () => document.getElementById(create().getAttribute('aria-describedby') ?? '')?.textContent;
const template = (name: string) => screen.getByRole<HTMLButtonElement>('button', { name });
const nameField = () => screen.getByLabelText<HTMLInputElement>('Name', { exact: false, selector: 'input' });
const editor = () => screen.getByRole('textbox', { name: 'Query' }).textContent;
const askedOf = (path: string) => asked.filter(([of]) => of === path).map(([, body]) => body);

test('an untouched page shows no mistake, asks nothing about it, and says what comes first', async () => {
  shown();
  await screen.findByRole('button', { name: 'Equal keys' });
  await act(() => new Promise((resolve) => setTimeout(resolve, 500)));
  expect(screen.queryByRole('alert')).toBeNull();
  expect(askedOf('validate')).toEqual([]);
  expect(askedOf('preview')).toEqual([]);
  expect(create().disabled).toBe(true);
  expect(createdWhy()).toMatch(/^Before it can be created: write a query.*; give the job a name\.$/);
  expect(screen.queryByRole('button', { name: 'Discard draft' })).toBeNull();
});

test('a template fills in the streams and their columns, and the rows of the preview follow', async () => {
  shown();
  await screen.findByRole('button', { name: 'In order of time' });
  await waitFor(() => expect(template('In order of time').disabled).toBe(false));
  fireEvent.click(template('In order of time'));
  await waitFor(() => expect(editor()).toContain('WHERE r.k = s.k'));
  await screen.findByRole('region', { name: 'Rows of the preview' });
  expect(askedOf('validate').at(-1)?.operator).toEqual({ name: 'auto', ordering: 'total' });
  expect(askedOf('preview')).toHaveLength(1);
  const words = /^Looked at r: 20,000 rows from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d to .*, 3 that cannot be read; s: /;
  expect(screen.getByText(words)).toBeDefined();
  fireEvent.click(template('Equal keys'));
  await waitFor(() => expect(askedOf('validate').at(-1)?.operator).toEqual({ name: 'auto' }));
});

test('what is typed is there again after another page, for who typed it, until it is discarded', async () => {
  typed(QUERY);
  shown();
  fireEvent.change(nameField(), { target: { value: 'other' } });
  fireEvent.click(screen.getByRole('checkbox', { name: 'Start at once' }));
  shown('admin', 'usr_2');
  expect(editor()).not.toContain('SELECT');
  shown();
  expect(editor()).toContain('WITHIN 10 SECONDS');
  expect(nameField().value).toBe('other');
  expect(screen.getByRole('button', { name: 'Create' })).toBeDefined();
  fireEvent.click(screen.getByRole('button', { name: 'Discard draft' }));
  await waitFor(() => expect(editor()).not.toContain('SELECT'));
  expect(keptDraft('usr_1')).toEqual(EMPTY);
});

test('a mistake keeps it from being created, from a preview and from a plan, and the reason is said', async () => {
  typed(QUERY.replace('r.k FROM', 'r.kk FROM'));
  shown();
  await screen.findByText(/there is no column r\.kk/);
  await waitFor(() => expect(createdWhy()).toBe('Before it can be created: mend the mistake in the query.'));
  expect(askedOf('preview')).toEqual([]);
  expect(askedOf('explain')).toEqual([]);
});

test('what takes the place of a right query is neither explained nor previewed before it was checked', async () => {
  typed(QUERY);
  shown();
  await screen.findByRole('region', { name: 'Rows of the preview' });
  await screen.findByText('Then checked');
  wrongPart = 's_k';
  await waitFor(() => expect(template('Equal keys').disabled).toBe(false));
  fireEvent.click(template('Equal keys'));
  await screen.findByText(/there is no column r\.kk/);
  expect(askedOf('validate').at(-1)?.query).toContain('s_k');
  expect([...askedOf('explain'), ...askedOf('preview')].map(({ query }) => query)).toEqual([QUERY, QUERY]);
});

test('a setting that is wrong is shown where it is, in a section that opens', async () => {
  typed(QUERY);
  shown();
  await waitFor(() => expect(create().disabled).toBe(false));
  const slots = screen.getByLabelText<HTMLInputElement>('Slots', { exact: false, selector: 'input' });
  expect(slots.closest('details')?.open).toBe(false);
  fireEvent.change(slots, { target: { value: '0' } });
  await screen.findByText('is 1 or more');
  expect(slots.closest('details')?.open).toBe(true);
  await waitFor(() => expect(createdWhy()).toBe('Before it can be created: change what is wrong in Slots.'));
  // It does not close under the hand that mends it.
  fireEvent.change(slots, { target: { value: '2' } });
  await waitFor(() => expect(create().disabled).toBe(false));
  expect(slots.closest('details')?.open).toBe(true);
});

test('without a window it is said by how much the state grows, and the join can be created', async () => {
  typed(QUERY);
  plan = { state_grows: true, state_bytes_per_hour: 3 * 2 ** 30 };
  shown();
  const warning = await screen.findByRole('note');
  expect(warning.textContent).toMatch(/^No window\. .* by about 3\.0 GiB an hour at the sampled/);
  expect(screen.queryByRole('alert')).toBeNull();
  await waitFor(() => expect(create().disabled).toBe(false));
  expect(create().getAttribute('aria-describedby')).toBeNull();
});

test('why the rate of a stream is not known is told', async () => {
  typed(QUERY);
  plan = { unknown_rates: { r: 'topic r is empty' } };
  shown();
  expect((await screen.findByText('Rate of r')).nextElementSibling?.textContent).toBe('not known: topic r is empty');
  expect(screen.queryByText('Rate of s')).toBeNull();
});

test('growth that nobody can tell is not told, and a window is no matter', async () => {
  typed(QUERY);
  plan = { state_grows: true, state_bytes_per_hour: null };
  shown();
  expect((await screen.findByRole('note')).textContent).toContain('how fast is not known before it runs');
  queryClient.clear();
  plan = { state_grows: false, state_bytes_per_hour: null };
  shown();
  await screen.findByText('Then checked');
  expect(screen.queryByRole('note')).toBeNull();
});

test('no row has a reason, and a preview is made again on demand', async () => {
  typed(QUERY);
  rows = [];
  shown();
  await screen.findByText('No row: no value of r.k is among those of s.k.');
  rows = [[7, 1]];
  fireEvent.click(screen.getByRole('button', { name: 'Preview again' }));
  await screen.findByRole('region', { name: 'Rows of the preview' });
  expect(screen.getByText('1 row')).toBeDefined();
});

test('a preview that is told to come again does so by itself', async () => {
  typed(QUERY);
  const problem = { code: 'rate_limited', status: 429, title: '', detail: '2 previews are being made' };
  refusal = Response.json(problem, { status: 429 });
  shown();
  await screen.findByRole('region', { name: 'Rows of the preview' });
  expect(askedOf('preview')).toHaveLength(2);
});

test('what is created is what was checked, and the draft is gone then', async () => {
  typed(QUERY, { fields: { 'results.retain': '30d', 'operator.ordering': 'inner' } });
  shown();
  await waitFor(() => expect(create().disabled).toBe(false));
  fireEvent.click(create());
  await waitFor(() => expect(keptDraft('usr_1')).toEqual(EMPTY));
  const body = { query: QUERY, operator: { name: 'auto', ordering: 'inner' }, results: { retain: '30d' } };
  expect(askedOf('jobs')).toEqual([{ ...body, name: 'wins', start: true }]);
  expect(askedOf('validate').at(-1)).toEqual(body);
});

test('what is typed is not created before it was checked, also after a check that failed', async () => {
  typed(QUERY);
  shown();
  await waitFor(() => expect(create().disabled).toBe(false));
  isDown = true;
  await act(() => queryClient.invalidateQueries({ queryKey: ['validate'] }));
  await screen.findByRole('alert');
  isDown = false;
  fireEvent.change(screen.getByLabelText('Slots', { exact: false, selector: 'input' }), { target: { value: '2' } });
  expect(create().disabled).toBe(true);
  await waitFor(() => expect(create().disabled).toBe(false));
  fireEvent.click(create());
  await waitFor(() => expect(askedOf('jobs').map(({ run }) => run)).toEqual([{ slots: 2 }]));
});

test('a viewer is told who creates jobs', () => {
  typed(QUERY);
  shown('viewer');
  expect(createdWhy()).toMatch(/^Before it can be created: ask an admin for the role operator: viewers look/);
});

test('a query that is longer than the API takes is not sent there, and its length is said', async () => {
  typed(`${QUERY} ${'x'.repeat(70_000)}`);
  shown();
  const words = /the query has 70,062 characters, and 65,536 is the most/i;
  expect(await screen.findByText(/^The query has 70,062 characters, and 65,536 is the most\.$/)).toBeDefined();
  await act(() => new Promise((resolve) => setTimeout(resolve, 500)));
  expect(createdWhy()).toMatch(words);
  expect(askedOf('validate')).toEqual([]);
  expect(screen.queryByText('is being checked')).toBeNull();
});

test('a check that failed is not said to go on', async () => {
  isDown = true;
  typed(QUERY);
  shown();
  await screen.findByText('could not be checked');
  expect(screen.queryByText('is being checked')).toBeNull();
});

test('where all streams end, and groups would wait for later rows, the job may run until the end', async () => {
  spec = { source: 'csv', path: 'sales.csv', time: 'ts' };
  typed(`${QUERY} GROUP BY r.k, TUMBLE(1 MINUTE)`);
  shown();
  fireEvent.click(await screen.findByRole('button', { name: 'Set Until the end' }));
  expect(keptDraft('usr_1').fields).toEqual({ 'run.until_end': 'true' });
  expect(screen.queryByRole('button', { name: 'Set Until the end' })).toBeNull();
});
