import { expect, test } from 'vitest';
import { streamName, uploadName } from './uploadName';

test('names that the platform takes stay as they are', () => {
  for (const name of ['orders.csv', 'Bestellungen März (2).csv', '注文.jsonl', 'a+b, c@d-1.parquet'])
    expect(uploadName(name)).toBe(name);
});

test('what it does not take becomes _', () => {
  expect(uploadName('orders\n💥.csv')).toBe('orders__.csv');
  expect(uploadName('.hidden.csv')).toBe('hidden.csv');
  expect(uploadName('../../etc/passwd')).toBe('etc_passwd');
  expect(uploadName('a*?[1].csv. ')).toBe('a___1_.csv');
  expect(uploadName('💥')).toBe('file');
  expect(uploadName('Ma\u0308rz.csv')).toBe('M\u00e4rz.csv');
});

test('a long name is cut before what tells the format', () => {
  const name = uploadName(`${'ü'.repeat(200)}.csv.gz`);
  expect(new TextEncoder().encode(name).length).toBeLessThanOrEqual(120);
  expect(name.endsWith('ü.csv.gz')).toBe(true);
});

test('a file gives its stream a name that queries may use', () => {
  expect(streamName('orders.csv')).toBe('orders');
  expect(streamName('2026-01 orders (new).csv.gz')).toBe('orders_new');
  expect(streamName('注文.csv')).toBe('');
});
