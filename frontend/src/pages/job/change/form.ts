/** A job's definition as texts in a form, and what of the form a change sends. The API judges what is typed. */
import type { Draft, Job, JobChange } from '../../../api/types';
import { definitionOf, fieldsOf, isSame, SECTIONS, type Definition, type Section } from './definition';
import { fieldOf, isForAnother, OPERATOR_NAME, type Kind } from './fields';

export interface Form {
  query: string;
  /** By dotted name; a field that is empty is not given. */
  fields: Record<string, string>;
  /** Take over the streams as they are registered now. */
  refreshStreams: boolean;
}

/** What is typed, and the job that it began from. */
export interface Typed {
  base: Job;
  form: Form;
}

export const pointerOf = (path: string): string => `/${path.replaceAll('.', '/')}`;

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const NUMBER = /^-?\d+(\.\d+)?$/;

const numberOrText = (text: string): unknown => (NUMBER.test(text) ? Number(text) : text);

/** What was typed as the API takes it; what is no number is sent as it is, and refused at its field. */
function valueOf(text: string, kind: Kind): unknown {
  const items = () => text.split(',').map((item) => item.trim());
  switch (kind) {
    case 'text':
      return text.trim();
    case 'number':
      return numberOrText(text.trim());
    case 'numbers':
      return items().map(numberOrText);
    case 'names':
      return items();
    case 'flag':
      return text === 'true' ? true : text === 'false' ? false : text;
  }
}

/** Every field of a definition but its query, as texts. */
function textsOf(definition: Definition): Record<string, string> {
  const { operator, results, run } = definitionOf(definition);
  return Object.fromEntries([...fieldsOf({ operator, results, run })].map(([path, value]) => [path, textOf(value)]));
}

export function formOf(definition: Definition): Form {
  return { query: definition.query, fields: textsOf(definition), refreshStreams: false };
}

export const operatorOfForm = (form: Form): string => form.fields[OPERATOR_NAME] ?? 'auto';

function put(section: Record<string, unknown>, [name = '', ...below]: string[], value: unknown): void {
  if (below.length === 0) {
    section[name] = value;
    return;
  }
  section[name] ??= {};
  put(section[name] as Record<string, unknown>, below, value);
}

/** A section as it is typed. Fields that nobody touched keep their value to the letter. */
function sectionOf(name: Section, base: Definition, form: Form): Record<string, unknown> {
  const values = fieldsOf({ [name]: base[name] });
  const section: Record<string, unknown> = {};
  for (const [path, text] of Object.entries(form.fields)) {
    if (!path.startsWith(`${name}.`) || text.trim() === '') continue;
    if (name === 'operator' && isForAnother(path, operatorOfForm(form))) continue;
    const before = values.get(path);
    const value = text === textOf(before) ? before : valueOf(text, fieldOf(path).kind);
    put(section, path.split('.').slice(1), value);
  }
  return section;
}

export function draftOf(base: Definition, form: Form): Draft {
  const kept = definitionOf(base);
  return {
    query: form.query,
    operator: sectionOf('operator', kept, form),
    results: sectionOf('results', kept, form),
    run: sectionOf('run', kept, form),
  };
}

/** Only what differs: a section that is not sent stays as it is. */
export function changeOf(base: Definition, form: Form): JobChange {
  const kept = definitionOf(base);
  const draft = draftOf(base, form);
  const change: JobChange = {};
  if (form.query !== kept.query) change.query = form.query;
  for (const name of SECTIONS) {
    const before = fieldsOf(kept[name]);
    const after = fieldsOf(draft[name] ?? {});
    const isOther = before.size !== after.size || [...after].some(([path, value]) => !isSame(before.get(path), value));
    if (isOther) change[name] = draft[name] ?? {};
  }
  if (form.refreshStreams) change.refresh_streams = true;
  return change;
}

export const isEmpty = (change: JobChange): boolean => Object.keys(change).length === 0;

/** What is typed over a job that somebody changed meanwhile: what was touched stays, all else is as it is there. */
export function rebased({ base, form }: Typed, now: Job): Typed {
  const old = formOf(base);
  const fresh = formOf(now);
  const paths = new Set([...Object.keys(old.fields), ...Object.keys(fresh.fields), ...Object.keys(form.fields)]);
  const fields: Record<string, string> = {};
  for (const path of paths) {
    const typed = form.fields[path] ?? '';
    const text = typed === (old.fields[path] ?? '') ? (fresh.fields[path] ?? '') : typed;
    if (text !== '') fields[path] = text;
  }
  const query = form.query === old.query ? fresh.query : form.query;
  return { base: now, form: { ...form, query, fields } };
}

/** Fields that were touched here and there, and not to the same end. */
export function contested({ base, form }: Typed, now: Job): string[] {
  const old = formOf(base);
  const fresh = formOf(now);
  const isContested = (before: string, typed: string, theirs: string): boolean =>
    typed !== before && theirs !== before && typed !== theirs;
  const paths = new Set([...Object.keys(old.fields), ...Object.keys(fresh.fields), ...Object.keys(form.fields)]);
  const fields = [...paths].filter((path) =>
    isContested(old.fields[path] ?? '', form.fields[path] ?? '', fresh.fields[path] ?? ''),
  );
  return isContested(old.query, form.query, fresh.query) ? ['query', ...fields] : fields;
}
