import { QueryClient } from '@tanstack/react-query';
import { expect, test, vi } from 'vitest';
import {
  apiKeysQuery,
  machinesQuery,
  madeQuery,
  revisionsQuery,
  savedQueriesQuery,
  uploadsQuery,
  usersQuery,
} from './queries';

/** Of every list two pages; of events those of two kinds. */
function stubPages(): string[] {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    asked.push(pathname);
    const last = searchParams.get('starting_after');
    const place = last === null ? 2 : 1;
    const one = { id: String(place), name: String(place), version: place, kind: searchParams.get('kind') };
    return Promise.resolve(Response.json({ data: [one], has_more: place === 2 }));
  });
  return asked;
}

const client = () => new QueryClient({ defaultOptions: { queries: { retry: false } } });

test.each([
  ['uploads', () => client().fetchQuery(uploadsQuery)],
  ['machines', () => client().fetchQuery(machinesQuery)],
  ['saved-queries', () => client().fetchQuery(savedQueriesQuery)],
  ['users', () => client().fetchQuery(usersQuery)],
  ['api-keys', () => client().fetchQuery(apiKeysQuery(true))],
  ['revisions', () => client().fetchQuery(revisionsQuery('job_1', 3))],
])('all pages of %s are listed', async (name, ask) => {
  const asked = stubPages();
  const { data, has_more } = await ask();
  expect([data.length, has_more]).toEqual([2, false]);
  expect(asked.every((path) => path.endsWith(`/${name}`))).toBe(true);
});

test('who made the versions of a job is asked of its changes alone, however much else happened', async () => {
  stubPages();
  const found = await client().fetchQuery(madeQuery('job_1', 3));
  expect(found.map(({ kind }) => kind)).toEqual(['job.changed', 'job.changed', 'job.created', 'job.created']);
});
