import { expect, test } from 'vitest';
import { planOf } from './plan';
import { streamsOf } from './streamsOf';

test('only streams that a query names are looked at', () => {
  expect(streamsOf('SELECT ONLINE bids.id FROM bids, asks', ['bids', 'asks', 'bid', 'ask'])).toEqual(['bids', 'asks']);
  expect(streamsOf('', ['bids'])).toEqual([]);
});

test('an operator that cannot run the query says why, and has no costs', () => {
  const plan = planOf({
    plan: {
      operator: 'biclique',
      operators: [
        { name: 'biclique', refusal: null, memory_bytes: 10, replication: 2, comparisons_per_s: 3, busiest_bytes_per_s: 2,
          growth: { slots: null, most: 'reading' } },
        { name: 'spark', refusal: 'it needs an equality', memory_bytes: null },
      ],
    },
    text: '',
    columns: [],
  });
  expect(plan.options[0]).toMatchObject({ refusal: null, memoryBytes: 10, comparisonsPerS: 3, busiestBytesPerS: 2,
    growth: { slots: null, most: 'reading' } });
  expect(plan.options[1]).toMatchObject({ refusal: 'it needs an equality', memoryBytes: null, replication: null,
    growth: null });
});

test('an operator that reads a relation part by part has its prediction in words', () => {
  const plan = planOf({
    plan: {
      operators: [{ name: 'lookup' }, { name: 'ssbj' }],
      readings: { ssbj: { text: '62% of o from the cache', cached_share: 0.62 } },
    },
    text: '',
    columns: [],
  });
  expect(plan.options.map((option) => option.reading)).toEqual([null, '62% of o from the cache']);
});
