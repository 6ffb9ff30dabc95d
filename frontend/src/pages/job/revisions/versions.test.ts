import { expect, test } from 'vitest';
import type { Event, Job, Revision } from '../../../api/types';
import { changedWords, versionsOf } from './versions';

const QUERY = 'SELECT ONLINE a.x FROM a, b';
const revision = (version: number, until: string, run: Record<string, unknown>): Revision => ({
  version,
  until,
  query: QUERY,
  operator: { name: 'auto' },
  results: { store: 'sqlite' },
  run,
});
const JOB = {
  name: 'wins',
  version: 6,
  query: QUERY,
  operator: { name: 'auto' },
  results: { store: 'sqlite' },
  run: { slots: 4 },
  created_at: 't0',
} as unknown as Job;
const event = (kind: string, actor: string | null, data = {}, message = ''): Event => ({
  id: kind,
  job_id: 'j',
  at: 't',
  kind,
  severity: 'info',
  message,
  data,
  actor_id: actor,
});
const REVISIONS = { data: [revision(5, 't2', { slots: 4 }), revision(1, 't1', {})], has_more: false };
const EVENTS = [
  event('job.changed', 'bob', { version: 6 }, 'job wins was changed: streams.bids.rate'),
  event('job.changed', 'ann', { version: 2 }, 'job wins was changed: run.slots'),
  event('job.created', 'ann'),
];

test('each version says since when it is, who made it, and what it changed', () => {
  const found = versionsOf(JOB, REVISIONS, EVENTS);
  expect(found.map(({ version, since, actorId, isCurrent }) => [version, since, actorId, isCurrent])).toEqual([
    [6, 't2', 'bob', true],
    [5, 't1', 'ann', false],
    [1, 't0', 'ann', false],
  ]);
  expect(found[1]?.changes).toEqual([{ field: 'run.slots', before: undefined, after: 4 }]);
});

test('a change of the streams alone is told in the words of its event', () => {
  expect(versionsOf(JOB, REVISIONS, EVENTS).map(changedWords)).toEqual(['streams.bids.rate', 'run.slots', '']);
});

test('what is not written down any more is not made up', () => {
  expect(versionsOf(JOB, REVISIONS, [])[0]).toMatchObject({ since: 't2', actorId: null, message: null });
  const many = Array.from({ length: 200 }, (_, place) => revision(300 - place, `t${String(place)}`, {}));
  expect(versionsOf(JOB, { data: many, has_more: true }, []).at(-1)?.since).toBeNull();
  expect(versionsOf(JOB, { data: many, has_more: false }, []).at(-1)?.since).toBe('t0');
});
