import { expect, test } from 'vitest';
import type { Job } from '../../../api/types';
import { changesBetween } from './definition';
import { changeOf, contested, draftOf, formOf, rebased, type Form } from './form';

const job = (given: Partial<Job>): Job =>
  ({
    version: 3,
    query: 'SELECT ONLINE a.x FROM a, b',
    operator: { name: 'biclique', routing: 'hash', r_units: 2, archive_period: '1s' },
    results: { store: 'sqlite', snapshot: { epoch: '1s', delayed: 0.5 }, select: ['x', 'y'] },
    run: { slots: 2, strict: false },
    ...given,
  }) as Job;

const BASE = job({});
const typed = (fields: Record<string, string>, query = BASE.query): Form => ({
  ...formOf(BASE),
  query,
  fields: { ...formOf(BASE).fields, ...fields },
});

test('a form that nobody touched changes nothing', () => {
  expect(changeOf(BASE, formOf(BASE))).toEqual({});
  expect(formOf(BASE).fields).toMatchObject({ 'results.select': 'x, y', 'run.strict': 'false' });
  expect(formOf(BASE).fields).not.toHaveProperty('results.store');
});

test('a section is sent whole, and only if something in it differs', () => {
  expect(changeOf(BASE, typed({ 'run.slots': '4' }))).toEqual({ run: { slots: 4, strict: false } });
  expect(changeOf(BASE, typed({ 'run.slots': '' }))).toEqual({ run: { strict: false } });
  expect(changeOf(BASE, typed({ 'results.snapshot.epoch': '5s' }))).toEqual({
    results: { snapshot: { epoch: '5s', delayed: 0.5 }, select: ['x', 'y'] },
  });
});

test('what is typed becomes what the API takes, and nonsense is for the API to refuse', () => {
  expect(draftOf(BASE, typed({ 'run.slots': 'many', 'operator.r_bounds': '10, 20' })).run).toMatchObject({
    slots: 'many',
  });
  expect(draftOf(BASE, typed({ 'operator.r_bounds': '10, 20' })).operator).toMatchObject({ r_bounds: [10, 20] });
  expect(draftOf(BASE, typed({ 'run.strict': 'true', 'results.select': 'x' }))).toMatchObject({
    run: { strict: true },
    results: { select: ['x'] },
  });
});

test('knobs of another operator are not sent, and are not forgotten', () => {
  const form = typed({ 'operator.name': 'matrix', 'operator.rows': '3' });
  expect(changeOf(BASE, form).operator).toEqual({ name: 'matrix', rows: 3, archive_period: '1s' });
  expect(form.fields['operator.routing']).toBe('hash');
});

test('over a job that was changed meanwhile, what was touched stays and all else is theirs', () => {
  const now = job({ version: 5, query: 'SELECT ONLINE a.x, b.y FROM a, b', run: { slots: 8, heartbeat: '2s' } });
  const mine = { base: BASE, form: typed({ 'run.slots': '4', 'operator.routing': 'random' }) };
  const merged = rebased(mine, now);
  expect(merged.form.query).toBe(now.query);
  expect(merged.form.fields).toMatchObject({
    'run.slots': '4',
    'run.heartbeat': '2s',
    'operator.routing': 'random',
  });
  expect(merged.form.fields).not.toHaveProperty('run.strict');
  expect(changeOf(now, merged.form).run).toEqual({ slots: 4, heartbeat: '2s' });
  expect(contested(mine, now)).toEqual(['run.slots']);
  expect(contested({ base: BASE, form: typed({ 'run.slots': '8' }) }, now)).toEqual([]);
});

test('a query beside the own one is a field of its own, which the form leaves alone', () => {
  const now = job({ version: 5, queries: { cheap: { query: 'SELECT ONLINE a.y FROM a, b', stopped: false } } });
  expect(changesBetween(BASE, now)).toEqual([
    { field: 'queries.cheap.query', before: undefined, after: 'SELECT ONLINE a.y FROM a, b' },
    { field: 'queries.cheap.stopped', before: undefined, after: false },
  ]);
  const mine = rebased({ base: BASE, form: typed({ 'run.slots': '4' }) }, now);
  expect(changeOf(now, mine.form)).toEqual({ run: { slots: 4, strict: false } });
});

test('two definitions differ by field, and the store is no field of them', () => {
  expect(changesBetween(BASE, job({ results: { store: 'hbase' }, run: { slots: 2, strict: true } }))).toEqual([
    { field: 'results.select', before: ['x', 'y'], after: undefined },
    { field: 'results.snapshot.delayed', before: 0.5, after: undefined },
    { field: 'results.snapshot.epoch', before: '1s', after: undefined },
    { field: 'run.strict', before: false, after: true },
  ]);
});
