import { expect, test } from 'vitest';
import type { Stream } from '../../api/types';
import { holdsGroupsBack } from './ends';

const stream = (name: string, spec: object) => ({ id: name, name, spec }) as unknown as Stream;
const file = stream('r', { source: 'csv', path: 'uploads/sales.csv' });
const other = stream('s', { source: 'jsonl', path: '/data/clicks.jsonl.gz' });
const topic = stream('t', { source: 'kafka', topic: 't' });
const query = 'SELECT ONLINE COUNT(*) AS n FROM r, s WHERE r.k = s.k WITHIN 5 SECONDS GROUP BY r.k, TUMBLE(1 MINUTE)';
const draft = { query, fields: {} };

test('groups in windows over streams that all end are held back, unless the job ends with them', () => {
  expect(holdsGroupsBack(draft, [file, other, topic])).toBe(true);
  expect(holdsGroupsBack({ query, fields: { 'run.until_end': 'true' } }, [file, other])).toBe(false);
  expect(holdsGroupsBack({ ...draft, query: query.replace(', TUMBLE(1 MINUTE)', '') }, [file, other])).toBe(false);
  expect(holdsGroupsBack({ ...draft, query: `${query} EMIT EVERY 1 SECOND` }, [file, other])).toBe(false);
});

test.each([
  { source: 'csv', path: '/data/sales' },
  { source: 'csv', path: '/data/*.csv' },
  { source: 'push' },
  { source: 'generator', kind: 'zipf.r' },
])('of a stream that may go on nothing is said: %o', (spec) => {
  expect(holdsGroupsBack(draft, [file, stream('s', spec)])).toBe(false);
});

test('so many generated rows have an end', () => {
  expect(holdsGroupsBack(draft, [file, stream('s', { source: 'generator', rows: 100 })])).toBe(true);
});
