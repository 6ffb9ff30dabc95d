import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createEvent, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';
import { FileChoice, type Chosen } from './FileChoice';

const upload = { name: 'orders.csv', path: 'upload:orders.csv', bytes: 9, format: 'csv', read_by: [] };
const entry = (name: string, kind: 'file' | 'folder') => ({
  name,
  path: `/home/me/${name}`,
  kind,
  format: kind === 'file' ? 'jsonl' : null,
  bytes: kind === 'file' ? 5 : null,
});
const ROOTS = { path: null, parent: null, data: [{ ...entry('me', 'folder'), path: '/home/me' }], has_more: false };
const HOME = { path: '/home/me', parent: null, data: [entry('in', 'folder'), entry('a.jsonl', 'file')], has_more: true };
const MORE = { ...HOME, data: [entry('b.jsonl', 'file')], has_more: false };

let sent: Request[] = [];
let refusal: object | null = null;

function answer(request: Request): object {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname.endsWith('/config')) return { upload_bytes_max: 10 };
  if (pathname.endsWith('/files')) {
    if (searchParams.get('path') === null) return ROOTS;
    return searchParams.get('starting_after') === 'a.jsonl' ? MORE : HOME;
  }
  return request.method === 'POST' ? (refusal ?? upload) : { data: [upload], has_more: false };
}

beforeEach(() => {
  sent = [];
  refusal = null;
  vi.stubGlobal('fetch', (request: Request) => {
    sent.push(request);
    const body = answer(request);
    return Promise.resolve(Response.json(body, { status: 'status' in body ? Number(body.status) : 200 }));
  });
});

const posts = () => sent.filter(({ method }) => method === 'POST');

async function shown(): Promise<Chosen[]> {
  const chosen: Chosen[] = [];
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <FileChoice onChoose={(one) => chosen.push(one)}>
          <p>Path</p>
        </FileChoice>
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByText(/up to 10 B/);
  return chosen;
}

const give = (...files: File[]) =>
  fireEvent.change(screen.getByLabelText('File to upload'), { target: { files: list(...files) } });

/** What browsers hand over has `item`, and an array has not. */
function list(...files: File[]) {
  return Object.assign([...files], { item: (at: number) => files[at] ?? null }) as unknown as File[];
}

test('a file is sent as it is, under a name that the platform takes, and chosen', async () => {
  const chosen = await shown();
  give(new File(['id\n1\n'], 'orders💥.csv'));
  await screen.findByText(/orders.csv is uploaded/);
  const [request] = posts();
  expect(new URL(request?.url ?? '').searchParams.get('name')).toBe('orders_.csv');
  expect(request?.headers.get('Content-Type')).toBe('application/octet-stream');
  expect(await request?.text()).toBe('id\n1\n');
  expect(chosen).toMatchObject([{ path: 'upload:orders.csv', format: 'csv' }]);
});

test('a file that is dropped is sent, and the page is not left for it', async () => {
  const chosen = await shown();
  const place = screen.getByText('Path');
  const dataTransfer = { types: ['Files'], files: list(new File(['id\n'], 'orders.csv')) };
  const drop = createEvent.drop(place, { dataTransfer });
  fireEvent(place, drop);
  expect(drop.defaultPrevented).toBe(true);
  await waitFor(() => expect(chosen).toHaveLength(1));
  const text = createEvent.drop(place, { dataTransfer: { types: ['text/plain'], files: list() } });
  fireEvent(place, text);
  expect(text.defaultPrevented).toBe(false);
});

test('a file that is too large is not even sent, and several are not sent either', async () => {
  const chosen = await shown();
  give(new File(['x'.repeat(11)], 'large.csv'));
  expect((await screen.findByRole('alert')).textContent).toMatch(/large.csv has 11 B, and uploads at most 10 B/);
  fireEvent.drop(screen.getByText('Path'), {
    dataTransfer: { types: ['Files'], files: list(new File(['a'], 'a.csv'), new File(['b'], 'b.csv')) },
  });
  await screen.findByText(/Upload one file at a time/);
  expect(posts()).toHaveLength(0);
  expect(chosen).toHaveLength(0);
});

test('what the platform says against a file is shown', async () => {
  refusal = { type: '', code: 'conflict', status: 409, title: 'No', detail: 'there is an upload orders.csv already' };
  const chosen = await shown();
  give(new File(['id\n'], 'orders.csv'));
  expect((await screen.findByRole('alert')).textContent).toContain('there is an upload orders.csv already');
  expect(chosen).toHaveLength(0);
});

test('a file is chosen from the folders, page by page, and the focus goes with it and back', async () => {
  const chosen = await shown();
  fireEvent.click(screen.getByRole('button', { name: 'Browse…' }));
  fireEvent.click(await screen.findByRole('button', { name: /^me/ }));
  await screen.findByRole('button', { name: /^a.jsonl/ });
  expect(document.activeElement).toBe(screen.getByRole('region', { name: 'Files and folders' }));
  fireEvent.click(screen.getByRole('button', { name: 'Show more' }));
  fireEvent.click(await screen.findByRole('button', { name: /^b.jsonl/ }));
  expect(chosen).toEqual([{ name: 'b.jsonl', path: '/home/me/b.jsonl', format: 'jsonl' }]);
  await waitFor(() => expect(document.activeElement?.textContent).toBe('Browse…'));
});

test('a folder is chosen with the format of its first file, and an upload from the list of them', async () => {
  const chosen = await shown();
  fireEvent.click(screen.getByRole('button', { name: 'Browse…' }));
  fireEvent.click(await screen.findByRole('button', { name: /^me/ }));
  fireEvent.click(await screen.findByRole('button', { name: 'Use this folder' }));
  fireEvent.click(screen.getByRole('button', { name: 'Browse…' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Uploaded files' }));
  fireEvent.click(await screen.findByRole('button', { name: /^orders.csv/ }));
  expect(chosen).toMatchObject([
    { path: '/home/me', format: 'jsonl' },
    { path: 'upload:orders.csv', format: 'csv' },
  ]);
});
