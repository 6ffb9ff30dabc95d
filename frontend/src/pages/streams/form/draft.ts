/** A stream's entry as the form has it, and the entry that it means. What no field shows is kept as it is. */
import type { Column, Spec, SpecField } from '../../../api/types';

export type Connector = 'files' | 'kafka' | 'push' | 'generator';

/** The fields that are one text each; those of a section have its name before a dot. */
export type TextField =
  | 'path'
  | 'csv.delimiter'
  | 'csv.null'
  | 'servers'
  | 'topic'
  | 'format'
  | 'avro_schema'
  | 'starting'
  | 'rows_per_s'
  | 'kind'
  | 'rate'
  | 'rows'
  | 'seed'
  | 'begin'
  | 'time'
  | 'time_unit'
  | 'delay'
  | 'idle'
  | 'key'
  | 'punctuate.every'
  | 'punctuate.column'
  | 'punctuate.value'
  | 'punctuate.per'
  | 'shed.threshold'
  | 'shed.capacity'
  | 'shed.base'
  | 'shed.shape';

/** A name with its value, such as a column with its type. */
export interface Pair {
  name: string;
  value: unknown;
}

export type PairList = 'schema' | 'options' | 'client';

export interface Draft {
  source: string;
  texts: Partial<Record<TextField, string>>;
  /** Times are when rows arrive, and no column has them. */
  isArrival: boolean;
  /** Null where the columns are taken from the source. */
  schema: Pair[] | null;
  options: Pair[];
  client: Pair[];
  rest: Spec;
}

export const FILE_FORMATS = ['parquet', 'csv', 'jsonl', 'arrow'];
const ARRIVAL = 'arrival';

const TEXTS_OF: Record<Connector, TextField[]> = {
  files: ['path'],
  kafka: ['servers', 'topic', 'format', 'avro_schema', 'starting', 'rows_per_s'],
  push: [],
  generator: ['kind', 'rate', 'rows', 'seed', 'begin'],
};
const TEXTS_OF_ALL: TextField[] = ['time', 'time_unit', 'delay', 'idle'];
const PAIRS_OF: Record<Connector, PairList[]> = {
  files: ['schema'],
  kafka: ['schema', 'client'],
  push: ['schema'],
  generator: ['options'],
};
/** Sections with the fields that the form has. */
const SECTIONS: Partial<Record<SpecField, string[]>> = {
  csv: ['delimiter', 'null'],
  punctuate: ['every', 'column', 'value', 'per'],
  shed: ['threshold', 'capacity', 'base', 'shape'],
};
const NUMBERS = new Set<TextField>(['rate', 'rows', 'rows_per_s', 'seed', 'shed.threshold', 'shed.capacity', 'shed.base']);
/** Fields whose texts are sent as they are, since only the platform knows which type is meant; a number is kept. */
const TEXTS_ONLY = new Set<string>(['punctuate.value']);
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;

export function connectorOf(source: unknown): Connector | null {
  if (source === 'kafka' || source === 'push' || source === 'generator') return source;
  return typeof source === 'string' && FILE_FORMATS.includes(source) ? 'files' : null;
}

/** Whether rows of this source do not tell their columns, so that somebody has to. */
export const needsSchema = (connector: Connector | null): boolean => connector === 'kafka' || connector === 'push';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isScalar = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number';

const pairsOf = (value: object): Pair[] =>
  Object.entries(value).map(([name, one]) => ({ name, value: one as unknown }));

/** The draft of an entry; `specOf` gives the entry back. */
export function draftOf(spec: Spec): Draft {
  const connector = connectorOf(spec.source);
  const texts = new Set<string>(connector === null ? TEXTS_OF_ALL : [...TEXTS_OF[connector], ...TEXTS_OF_ALL]);
  const pairs = new Set<string>(connector === null ? [] : PAIRS_OF[connector]);
  const draft: Draft = { source: '', texts: {}, isArrival: false, schema: null, options: [], client: [], rest: {} };
  for (const [name, value] of Object.entries(spec)) {
    const fields = SECTIONS[name as SpecField];
    if (name === 'source' && typeof value === 'string') draft.source = value;
    else if (name === 'time' && value === ARRIVAL) draft.isArrival = true;
    else if (name === 'key' && endsKeys(spec)) draft.texts.key = spec.key.join(', ');
    else if (name === 'deletes' && endsKeys(spec)) continue;
    else if (texts.has(name) && isScalar(value) && value !== '') draft.texts[name as TextField] = String(value);
    else if (name === 'avro_schema' && texts.has(name) && isObject(value))
      draft.texts[name] = JSON.stringify(value, null, 2);
    else if (pairs.has(name) && isObject(value)) draft[name as PairList] = pairsOf(value);
    else if (fields !== undefined && isObject(value) && isShown(name, value, fields))
      for (const [field, one] of Object.entries(value)) draft.texts[`${name}.${field}` as TextField] = String(one);
    else draft.rest[name] = value;
  }
  if (needsSchema(connector)) draft.schema ??= [];
  return draft;
}

/** Whether rows of the stream may end a key whose columns one line of text can name. */
const endsKeys = (spec: Spec): spec is Spec & { key: string[] } =>
  spec.deletes === true &&
  Array.isArray(spec.key) &&
  spec.key.length > 0 &&
  spec.key.every((name) => typeof name === 'string' && name !== '' && name === name.trim() && !name.includes(','));

const isShown = (name: string, section: Record<string, unknown>, fields: string[]): boolean =>
  Object.keys(section).length > 0 &&
  Object.entries(section).every(
    ([field, value]) =>
      fields.includes(field) &&
      isScalar(value) &&
      value !== '' &&
      (typeof value === 'string' || !TEXTS_ONLY.has(`${name}.${field}`)),
  );

/** The entry that a draft means: without the fields of other connectors, and those that are empty. */
export function specOf(draft: Draft): Spec {
  const connector = connectorOf(draft.source);
  const spec: Spec = {};
  if (draft.source !== '') spec.source = draft.source;
  const given = (field: TextField) => {
    const value = valueOf(field, draft.texts[field] ?? '');
    if (value !== undefined) spec[field] = value;
  };
  if (connector !== null) {
    TEXTS_OF[connector].forEach(given);
    for (const list of PAIRS_OF[connector]) {
      const pairs = draft[list];
      if (pairs !== null && (list === 'schema' || pairs.some((pair) => isMeant(list, pair))))
        spec[list] = mappingOf(list, pairs);
    }
  }
  if (draft.isArrival) spec.time = ARRIVAL;
  TEXTS_OF_ALL.filter((field) => !draft.isArrival || field !== 'time').forEach(given);
  const key = namesIn(draft.texts.key ?? '');
  if (key.length > 0) Object.assign(spec, { key, deletes: true });
  for (const [name, fields] of Object.entries(SECTIONS)) {
    if (name === 'csv' && draft.source !== 'csv') continue;
    const section = fields.flatMap((field) => {
      const value = valueOf(`${name}.${field}` as TextField, draft.texts[`${name}.${field}` as TextField] ?? '');
      return value === undefined ? [] : [[field, value] as const];
    });
    if (section.length > 0) spec[name] = Object.fromEntries(section);
  }
  // A field that was typed since stands for what could not be shown.
  return { ...draft.rest, ...spec };
}

const namesIn = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

function valueOf(field: TextField, typed: string): unknown {
  const text = field === 'csv.delimiter' ? typed : typed.trim();
  if (text === '') return undefined;
  if (NUMBERS.has(field) && NUMBER.test(text)) return Number(text);
  if (field === 'avro_schema' && text.startsWith('{')) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text; // the platform says what is wrong with it
    }
  }
  return text;
}

/** A value as it is typed. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value);

const isNamed = ({ name }: Pair): boolean => name.trim() !== '';

/** A new column has a type already, and means nothing before it has a name. */
const isMeant = (list: PairList | 'secrets', pair: Pair): boolean =>
  isNamed(pair) || (list !== 'schema' && textOf(pair.value).trim() !== '');

/** Pairs as the mapping that they are in an entry. */
export function mappingOf(list: PairList | 'secrets', pairs: Pair[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs
      .filter((pair) => isMeant(list, pair))
      .map(({ name, value }) => {
        const isNumber = list === 'options' && typeof value === 'string' && NUMBER.test(value.trim());
        return [name.trim(), isNumber ? Number(value) : value];
      }),
  );
}

/** The same draft for another source: what the other connector cannot have stays behind for a way back. */
export function withSource(draft: Draft, source: string): Draft {
  const connector = connectorOf(source);
  const ofConnectors = new Set<string>([...Object.values(TEXTS_OF).flat(), ...Object.values(PAIRS_OF).flat()]);
  const rest = Object.fromEntries(Object.entries(draft.rest).filter(([name]) => !ofConnectors.has(name)));
  const { texts } = draft;
  const schema = draft.schema?.some(isNamed) ? draft.schema : needsSchema(connector) ? [{ ...NEW_COLUMN }] : null;
  const next = { ...draft, source, rest, schema };
  if (connector === 'kafka') return { ...next, texts: { format: 'json', ...texts } };
  if (connector === 'generator') return { ...next, texts: { kind: 'zipf.r', rate: '1000/s', time: 'ts', ...texts } };
  return next;
}

/** The fields that the form shows for this draft, as errors call them. */
export function fieldsOf(draft: Draft): string[] {
  const connector = connectorOf(draft.source);
  const own = connector === null ? [] : [...TEXTS_OF[connector], ...PAIRS_OF[connector]];
  const ofSections = Object.entries(SECTIONS).flatMap(([name, fields]) => fields.map((field) => `${name}.${field}`));
  return ['source', ...own, ...TEXTS_OF_ALL, 'key', ...ofSections];
}

export const NEW_COLUMN: Pair = { name: '', value: 'int64' };

/** Columns that were found, as the columns that are given. */
export const schemaOf = (columns: Column[]): Pair[] => columns.map(({ name, type }) => ({ name, value: type }));

/** What can be told without the platform, by the field's name; pairs have their number. */
export function mistakesIn(draft: Draft): Record<string, string> {
  const connector = connectorOf(draft.source);
  const mistakes: Record<string, string> = {};
  for (const field of ['rows', 'seed'] as const) {
    const value = valueOf(field, draft.texts[field] ?? '');
    if (
      connector === 'generator' &&
      typeof value === 'number' &&
      Number.isInteger(value) &&
      !Number.isSafeInteger(value)
    )
      mistakes[field] = 'is larger than a browser keeps exactly; send it from Python';
  }
  for (const list of connector === null ? [] : PAIRS_OF[connector])
    Object.assign(mistakes, mistakesOfPairs(list, draft[list] ?? []));
  return mistakes;
}

export function mistakesOfPairs(list: PairList | 'secrets', pairs: Pair[]): Record<string, string> {
  const mistakes: Record<string, string> = {};
  const names = pairs.map(({ name }) => name.trim());
  pairs.forEach((pair, place) => {
    const name = names[place] ?? '';
    const isWanted = list === 'schema' ? pairs.length > 1 : isMeant(list, pair);
    if (isWanted && name === '') mistakes[`${list}#${String(place)}`] = 'a name is missing';
    else if (name !== '' && names.indexOf(name) < place)
      mistakes[`${list}#${String(place)}`] = `"${name}" is there already`;
  });
  return mistakes;
}
