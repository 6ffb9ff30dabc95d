import { expect, test } from 'vitest';
import { TEMPLATES, type Known } from './templates';

const [equal, close, ordered, counted, changing, unmatched, latest] = TEMPLATES;

const stream = (name: string, columns: Record<string, string>, time = 'ts'): Known => ({
  name,
  columns: Object.entries(columns).map(([column, type]) => ({ name: column, type })),
  time,
});

const auctions = stream('demo_auctions', { id: 'int64', item: 'string', reserve: 'int64', ts: 'timestamp' });
const bids = stream('demo_bids', { auction: 'int64', bidder: 'int64', price: 'int64', ts: 'timestamp' });

test('a column called as the other stream is the key to it', () => {
  const query = `SELECT ONLINE demo_auctions.id, demo_auctions.item, demo_bids.auction, demo_bids.bidder
FROM demo_auctions, demo_bids
WHERE demo_auctions.id = demo_bids.auction
WITHIN 10 SECONDS`;
  expect(equal?.fill(auctions, bids)).toEqual({ query, ordering: '' });
  expect(ordered?.fill(auctions, bids)).toEqual({ query, ordering: 'total' });
});

test('pairs are counted by the key that they are joined by', () => {
  expect(counted?.fill(auctions, bids)?.query).toBe(`SELECT ONLINE demo_auctions.id, WINDOW_START() AS since, COUNT(*) AS n
FROM demo_auctions, demo_bids
WHERE demo_auctions.id = demo_bids.auction
WITHIN 10 SECONDS
GROUP BY demo_auctions.id, TUMBLE(1 MINUTE)`);
  expect(counted?.fill(auctions, stream('s', { x: 'float64' }))).toBeNull();
});

test('counts are kept up to date without a window', () => {
  expect(changing?.fill(auctions, bids)?.query).toBe(`SELECT ONLINE demo_auctions.id, COUNT(*) AS n
FROM demo_auctions, demo_bids
WHERE demo_auctions.id = demo_bids.auction
WITHIN 10 SECONDS
GROUP BY demo_auctions.id
EMIT EVERY 1 SECOND`);
});

test('rows without a match are those of the first stream alone', () => {
  expect(unmatched?.fill(auctions, bids)).toEqual({
    query: `SELECT ONLINE demo_auctions.*
FROM demo_auctions LEFT ANTI JOIN demo_bids
ON demo_auctions.id = demo_bids.auction
WITHIN 10 SECONDS`,
    ordering: '',
  });
  const odd = stream('a, b', { k: 'int64' });
  expect(unmatched?.fill(odd, odd)?.query.split('\n')[1]).toBe('FROM "a, b" AS a LEFT ANTI JOIN "a, b" AS b');
  expect(unmatched?.fill(auctions, stream('s', { x: 'float64' }))).toBeNull();
});

test('columns of one name are a key before two that are called id, and these before any others', () => {
  const where = (r: Record<string, string>, s: Record<string, string>) =>
    equal?.fill(stream('r', r), stream('s', s))?.query.split('\n')[2];
  expect(where({ id: 'int64', k: 'int32', ts: 'int64' }, { id: 'int64', k: 'int64' })).toBe('WHERE r.k = s.k');
  expect(where({ a: 'int64', id: 'int64' }, { b: 'int64', id: 'int64' })).toBe('WHERE r.id = s.id');
  expect(where({ o_orderkey: 'int64' }, { l_line: 'int64', l_orderkey: 'int64' })).toBe(
    'WHERE r.o_orderkey = s.l_orderkey',
  );
  expect(where({ a: 'string', b: 'int64' }, { c: 'int64' })).toBe('WHERE r.b = s.c');
  // Times and fractions are hardly ever equal.
  expect(where({ ts: 'int64', x: 'float64' }, { ts: 'int64', x: 'float64' })).toBeUndefined();
});

test('a band is over numbers that are no keys', () => {
  const query = close?.fill(auctions, bids)?.query ?? '';
  expect(query).toContain('WHERE demo_auctions.reserve BETWEEN demo_bids.bidder - 10 AND demo_bids.bidder + 10');
  const both = stream('s', { price: 'decimal128(10, 2)', reserve: 'float64' });
  expect(close?.fill(auctions, both)?.query).toContain('demo_auctions.reserve BETWEEN s.reserve - 10');
  expect(close?.fill(auctions, stream('s', { word: 'string', id: 'int64' }))).toBeNull();
});

test('columns of one name are told apart, a stream joins itself, and odd names are quoted', () => {
  const r = stream('where', { 'mood 😀': 'string', x: 'int64', ts: 'timestamp' });
  expect(equal?.fill(r, { ...r, name: 's' })?.query).toBe(`SELECT ONLINE "where"."mood 😀", "where".x, \
s."mood 😀" AS "s_mood 😀", s.x AS s_x
FROM "where", s
WHERE "where"."mood 😀" = s."mood 😀"
WITHIN 10 SECONDS`);
  expect(equal?.fill(r, r)?.query.split('\n')[1]).toBe('FROM "where" AS a, "where" AS b');
  for (const name of ['outer', 'for', 'distinct', 'all', 'values', 'window', 'Outer']) {
    expect(equal?.fill({ ...r, name }, { ...r, name: 's' })?.query.split('\n')[1]).toBe(`FROM "${name}", s`);
  }
});

test('the latest value is that of the same key and not newer, and needs event times of both', () => {
  expect(latest?.fill(bids, auctions)?.query).toBe(`SELECT ONLINE demo_bids.auction, demo_bids.bidder, demo_auctions.id, demo_auctions.item
FROM demo_bids ASOF LEFT JOIN demo_auctions
ON demo_bids.auction = demo_auctions.id AND demo_bids.ts >= demo_auctions.ts`);
  expect(latest?.fill(bids, bids)?.query).toContain('FROM demo_bids AS a ASOF LEFT JOIN demo_bids AS b\nON a.auction = b.auction');
  expect(latest?.fill(bids, { ...auctions, time: 'arrival' })).toBeNull();
});
