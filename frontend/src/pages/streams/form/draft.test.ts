import { expect, test } from 'vitest';
import { timesAmong } from './columnTypes';
import { draftOf, fieldsOf, mistakesIn, specOf, withSource } from './draft';

const ENTRIES = {
  files: {
    source: 'csv',
    path: '/data/orders',
    schema: { ts: 'timestamp', price: 'decimal(12,2)' },
    time: 'ts',
    delay: '2s',
    idle: '30s',
  },
  'files that carry their columns': { source: 'parquet', path: '/data/orders', time: 'ts', time_unit: 's' },
  'CSV of another dialect': { source: 'csv', path: '/d/*.csv', csv: { delimiter: '\t', null: 'NA' }, time: 'ts' },
  'CSV without a line of names': { source: 'csv', path: '/d', csv: { header: false, names: ['ts'] }, time: 'ts' },
  'no column given': { source: 'csv', path: '/data/orders', schema: {}, time: 'ts' },
  kafka: {
    source: 'kafka',
    servers: 'a:9092,b:9092',
    topic: 't',
    format: 'avro',
    avro_schema: { type: 'record', fields: [] },
    starting: 'latest',
    rows_per_s: 12.5,
    client: { 'security.protocol': 'SSL', 'fetch.max.bytes': 5 },
    schema: { id: 'int64' },
    time: 'arrival',
    punctuate: { column: 'kind', value: '007' },
  },
  'a marker that is a number': { source: 'csv', path: '/d', time: 'ts', punctuate: { column: 'kind', value: 7 } },
  push: { source: 'push', schema: { ts: 'timestamp' }, time: 'ts' },
  'rows that end a key': { source: 'push', schema: { ts: 'timestamp' }, time: 'ts', key: ['id', 'day'], deletes: true },
  'a key of names that one line cannot tell apart': { source: 'parquet', path: '/d', key: ['a,b'], deletes: true },
  'a key that no row ends': { source: 'parquet', path: '/d', key: ['id'], deletes: false },
  generator: {
    source: 'generator',
    kind: 'zipf.r',
    rate: '1000/s',
    rows: 50,
    seed: -3,
    begin: 'now',
    options: { keys: 10, skew: 0.5 },
    time: 'ts',
    punctuate: { every: '1s' },
    shed: { threshold: 5, capacity: 9, base: 0.1, shape: 'quadratic' },
  },
  'what the form has no field for': {
    source: 'parquet',
    path: ['/data'],
    topic: 't',
    rows: null,
    time: 'ts',
    schema: 'id int64',
    punctuate: { per: 'file' },
    shed: { threshold: 5, more: 1 },
    novelty: { a: [1] },
  },
  'no source that there is': { source: 'carrier pigeon', path: '/data', time: 'ts' },
  nothing: {},
};

test.each(Object.entries(ENTRIES))('the form keeps an entry as it is: %s', (_, spec) => {
  expect(specOf(draftOf(spec))).toEqual(spec);
});

test('fields that are empty are left out, and numbers are sent as numbers', () => {
  const draft = draftOf({ source: 'generator', kind: 'zipf.r', time: 'ts' });
  const typed = { ...draft, texts: { ...draft.texts, rate: ' 500 ', rows: '7', seed: 'seven', delay: '  ' } };
  expect(
    specOf({
      ...typed,
      options: [
        { name: ' keys ', value: '1e3' },
        { name: '', value: '' },
      ],
    }),
  ).toEqual({
    source: 'generator',
    kind: 'zipf.r',
    rate: 500,
    rows: 7,
    seed: 'seven',
    options: { keys: 1000 },
    time: 'ts',
  });
});

test('a key that is typed says that rows may end it', () => {
  const draft = draftOf({ source: 'push', schema: {}, time: 'ts' });
  expect(specOf({ ...draft, texts: { ...draft.texts, key: ' id,day , ' } })).toMatchObject({
    key: ['id', 'day'],
    deletes: true,
  });
  expect(specOf({ ...draft, texts: { ...draft.texts, key: ' , ' } })).not.toHaveProperty('deletes');
});

test('a value that was typed since stands for one that could not be shown', () => {
  const draft = draftOf({ source: 'csv', path: ['/a'], time: 'ts' });
  expect(specOf({ ...draft, texts: { ...draft.texts, path: '/b' } })).toEqual({
    source: 'csv',
    path: '/b',
    time: 'ts',
  });
});

test('another connector leaves what it cannot have behind, and finds it again on the way back', () => {
  const files = draftOf({ source: 'csv', path: '/data', time: 'at', delay: '2s', unknown: 1, kind: 'of generators' });
  const kafka = withSource(files, 'kafka');
  expect(specOf(kafka)).toEqual({ source: 'kafka', format: 'json', schema: {}, time: 'at', delay: '2s', unknown: 1 });
  expect(specOf(withSource(kafka, 'parquet'))).toEqual({
    source: 'parquet',
    path: '/data',
    time: 'at',
    delay: '2s',
    unknown: 1,
  });
  expect(specOf(withSource(draftOf({}), 'generator'))).toMatchObject({ kind: 'zipf.r', time: 'ts' });
});

test('columns without a name, and names that stand twice, are told before anything is sent', () => {
  const draft = draftOf({ source: 'push', time: 'ts' });
  const columns = ['ts', '', 'ts '].map((name) => ({ name, value: 'int64' }));
  expect(mistakesIn({ ...draft, schema: columns })).toEqual({
    'schema#1': 'a name is missing',
    'schema#2': '"ts" is there already',
  });
  expect(mistakesIn({ ...draft, schema: [{ name: '', value: 'int64' }] })).toEqual({});
});

test('a number that a browser would round is not sent', () => {
  const draft = draftOf({ source: 'generator', seed: 2 ** 60, time: 'ts' });
  expect(Object.keys(mistakesIn(draft))).toEqual(['seed']);
});

test('the form shows the fields of its connector only', () => {
  const shown = fieldsOf(draftOf({ source: 'generator' }));
  expect(shown).toContain('shed.capacity');
  expect(shown).not.toContain('path');
});

test('only what can be an event time is offered as one, and each name once', () => {
  const columns = ['at timestamp', ' int64', ' int64', 'at int64', 'price float64', 'day date'].map((text) => {
    const [name = '', type = ''] = text.split(' ');
    return { name, type };
  });
  expect(timesAmong(columns)).toEqual(['at', 'day']);
});
