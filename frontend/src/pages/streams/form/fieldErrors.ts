/** What the API says is wrong, by the field that it is about. */
import { asProblem } from '../../../api/problem';
import type { Span } from './json';

/** Messages by field: `path`, `shed.capacity`, `name`, `secrets`; pairs also by their number, as `schema#2`. */
export type Errors = Record<string, string>;

export const NO_ERRORS: Errors = {};

/** A pointer into a request's body as a field's name; columns and options are pointed to by the message only. */
function fieldOf(pointer: string, message: string): string {
  const field = pointer.replace(/^\/(spec(\/|$))?/, '').replaceAll('/', '.');
  const named = field === 'schema' || field === 'options' ? PART.exec(message)?.[1] : undefined;
  return named === undefined ? field : `${field}.${named}`;
}

const PART = /(?:^|\bno )(?:column|option) "([^"]*)"/;

/**
 * @param taken the field that a conflict is about, such as a name that another has.
 */
export function errorsOf(error: unknown, taken?: string): Errors {
  const problem = asProblem(error);
  const errors: Errors = {};
  for (const { pointer, detail } of problem.places) {
    if (pointer == null) continue;
    const field = fieldOf(pointer, detail);
    errors[field] = field in errors ? `${errors[field] ?? ''}; ${detail}` : detail;
  }
  if (problem.code === 'conflict' && taken !== undefined) errors[taken] = problem.message;
  return errors;
}

/** Whether each part of it stands at one of these fields, so that nothing is left to be said elsewhere. */
export function isAllShown(errors: Errors, fields: string[]): boolean {
  const names = Object.keys(errors);
  return (
    names.length > 0 && names.every((name) => fields.some((field) => name === field || name.startsWith(`${field}.`)))
  );
}

/** The message of a field, or of anything below it. */
export function errorAt(errors: Errors, field: string): string | undefined {
  const found = Object.keys(errors).find((name) => name === field || name.startsWith(`${field}.`));
  return found === undefined ? undefined : errors[found];
}

/** Without what was said of a field that has changed since. */
export const without = (errors: Errors, field: string): Errors =>
  Object.fromEntries(
    Object.entries(errors).filter(
      ([name]) => !(name === field || name.startsWith(`${field}.`) || name.startsWith(`${field}#`)),
    ),
  );

/** What is wrong with a list of pairs: by row, and what is about none of them. */
export function errorsOfRows(
  errors: Errors,
  field: string,
  names: string[],
): { rows: Errors; rest: string | undefined } {
  const rows: Errors = {};
  names.forEach((name, place) => {
    const error = errors[`${field}#${String(place)}`] ?? errors[`${field}.${name.trim()}`];
    if (error !== undefined) rows[place] = error;
  });
  const told = new Set(Object.values(rows));
  const rest = Object.keys(errors).find(
    (name) => (name === field || name.startsWith(`${field}.`)) && !told.has(errors[name] ?? ''),
  );
  return { rows, rest: rest === undefined ? undefined : errors[rest] };
}

/** Where in an entry's JSON a message belongs: at the innermost part there is. */
export function spanOf(spans: Map<string, Span>, field: string): Span | undefined {
  const parts = field === '' ? [] : field.split('.');
  for (let length = parts.length; length >= 0; length -= 1) {
    for (const joint of ['.', '/']) {
      // Settings of Kafka have dots of their own.
      const [first = '', ...more] = parts.slice(0, length);
      const pointer = length === 0 ? '' : more.length === 0 ? `/${first}` : `/${first}/${more.join(joint)}`;
      const span = spans.get(pointer);
      if (span !== undefined) return span;
    }
  }
  return undefined;
}
