import { expect, test } from 'vitest';
import { allPages, everyPages } from './pages';

const items = (count: number) => Array.from({ length: count }, (_, place) => ({ id: String(place) }));

/** A list, and what was asked of it. */
function listed(count: number) {
  const all = items(count);
  const asked: (string | undefined)[] = [];
  const ask = ({ limit, starting_after }: { limit: number; starting_after?: string }) => {
    asked.push(starting_after);
    const begin = starting_after === undefined ? 0 : Number(starting_after) + 1;
    return Promise.resolve({ data: all.slice(begin, begin + limit), has_more: begin + limit < count });
  };
  return { ask, asked };
}

test('a list that has more than a page is followed to its end', async () => {
  const { ask, asked } = listed(450);
  expect(await allPages(ask, ({ id }) => id)).toEqual({ data: items(450), has_more: false });
  expect(asked).toEqual([undefined, '199', '399']);
});

test('a list that never ends is not followed for ever', async () => {
  const { ask, asked } = listed(1_000_000);
  const found = await allPages(ask, ({ id }) => id);
  expect([found.data.length, found.has_more, asked.length]).toEqual([10_000, true, 50]);
});

test('a list of many pages is asked for as many times less often', () => {
  const every = everyPages(5_000);
  const held = (count: number) => ({ state: { data: { data: items(count), has_more: false } } });
  expect([every({ state: {} }), every(held(0)), every(held(200)), every(held(201)), every(held(2_500))]).toEqual([
    5_000, 5_000, 5_000, 10_000, 65_000,
  ]);
});
