/** A join that is being written: all of it as texts in a form, kept in the tab until it is created or discarded. */
import type { Draft } from '../../api/types';
import { baseUrl } from '../../env';
import type { Definition } from '../job/change/definition';
import { OPERATOR_NAME } from '../job/change/fields';
import { draftOf } from '../job/change/form';

export interface JoinDraft {
  name: string;
  start: boolean;
  query: string;
  /** By dotted name, such as `results.retain`; a field that is empty is not given. */
  fields: Record<string, string>;
}

export const EMPTY: JoinDraft = { name: '', start: true, query: '', fields: {} };

export const operatorOf = ({ fields }: JoinDraft): string => fields[OPERATOR_NAME] ?? 'auto';

/** A draft with a field set, or not set where the text is empty. */
export function withField(draft: JoinDraft, path: string, text: string): JoinDraft {
  const fields = Object.entries({ ...draft.fields, [path]: text }).filter(([, value]) => value !== '');
  return { ...draft, fields: Object.fromEntries(fields) };
}

/** The same with several of them. */
export const withFields = (draft: JoinDraft, fields: Record<string, string>): JoinDraft =>
  Object.entries(fields).reduce((before, [path, text]) => withField(before, path, text), draft);

/** The fields of the operator that a join is to have; `auto` also chooses the order of joins. */
export const fieldsOfOperator = (operator: string): Record<string, string> =>
  operator === 'auto'
    ? { [OPERATOR_NAME]: '', 'operator.tree': '', 'operator.orders': '' }
    : { [OPERATOR_NAME]: operator };

export const isTouched = ({ name, start, query, fields }: JoinDraft): boolean =>
  name !== '' || !start || query !== '' || Object.keys(fields).length > 0;

const NOTHING: Definition = { query: '', queries: {}, operator: {}, results: {}, run: {} };

/** What the API is asked about; sections in which nothing is set are left out. */
export function bodyOf(draft: Pick<JoinDraft, 'query' | 'fields'>): Draft {
  const fields = { [OPERATOR_NAME]: 'auto', ...draft.fields };
  const { query, ...sections } = draftOf(NOTHING, { query: draft.query, fields, refreshStreams: false });
  const given = Object.entries(sections).filter(([, section]) => Object.keys(section ?? {}).length > 0);
  return { query, ...Object.fromEntries(given) };
}

const keyOf = (owner: string): string => `streamjoin.new-join:${baseUrl.pathname}:${owner}`;

const isText = (value: unknown): value is string => typeof value === 'string';

function isDraft(value: unknown): value is JoinDraft {
  if (typeof value !== 'object' || value === null) return false;
  const { name, start, query, fields } = value as Record<string, unknown>;
  const areTexts = typeof fields === 'object' && fields !== null && Object.values(fields).every(isText);
  return isText(name) && typeof start === 'boolean' && isText(query) && areTexts;
}

/** What somebody typed in this tab earlier. */
export function keptDraft(owner: string): JoinDraft {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(keyOf(owner)) ?? 'null');
    return isDraft(kept) ? kept : EMPTY;
  } catch {
    return EMPTY;
  }
}

export function keepDraft(owner: string, draft: JoinDraft): void {
  try {
    if (isTouched(draft)) sessionStorage.setItem(keyOf(owner), JSON.stringify(draft));
    else sessionStorage.removeItem(keyOf(owner));
  } catch {
    // A browser that keeps nothing, or has no room: what is typed is still on the page.
  }
}
