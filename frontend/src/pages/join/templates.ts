/** Queries to begin with, over two registered streams and columns that look as if they belong together. */
import type { Column } from '../../api/types';
import { kindOf } from '../../format';
import { RESERVED } from './reserved';

export interface Known {
  name: string;
  columns: Column[];
  /** Its event time: a column, or `arrival`. */
  time: string;
}

export interface Filled {
  query: string;
  /** The order in which results leave; '' for none. */
  ordering: string;
}

const ARRIVAL = 'arrival';

export interface Template {
  title: string;
  note: string;
  /** Null where the streams have no columns for it. */
  fill: (r: Known, s: Known) => Filled | null;
}

const nameOf = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;

/** Types whose values can be equal on purpose, and which of them can be compared with each other. */
function keyKind(type: string): string | null {
  if (/^u?int/.test(type)) return 'integer';
  return type === 'string' ? type : null;
}

const isId = (column: string): boolean => column.toLowerCase() === 'id';

/** What a column that points to a row of the stream may be called: `auction` or `auction_id` for `demo_auctions`. */
function pointsTo(stream: string, column: string): boolean {
  const one = (stream.toLowerCase().split('_').at(-1) ?? '').replace(/s$/, '');
  return one !== '' && [one, `${one}_id`, `${one}id`].includes(column.toLowerCase());
}

const withoutPrefix = (column: string): string => column.toLowerCase().replace(/^[a-z]{1,2}_/, '');

/** How much two columns look like the same key; 0 where they cannot be one. */
function likeness(r: Known, mine: Column, s: Known, other: Column): number {
  const kind = keyKind(mine.type);
  if (kind === null || kind !== keyKind(other.type) || mine.name === r.time || other.name === s.time) return 0;
  if ((isId(mine.name) && pointsTo(r.name, other.name)) || (isId(other.name) && pointsTo(s.name, mine.name))) return 5;
  if (mine.name === other.name) return isId(mine.name) ? 2 : 4;
  return withoutPrefix(mine.name) === withoutPrefix(other.name) ? 3 : 1;
}

type Scored = [score: number, mine: Column, other: Column];

/** The pair of columns that scores best; null where none scores at all. */
function bestPair(r: Known, s: Known, score: (mine: Column, other: Column) => number): [Column, Column] | null {
  const pairs = r.columns.flatMap((mine) => s.columns.map((other): Scored => [score(mine, other), mine, other]));
  const best = pairs.reduce<Scored | null>((top, pair) => (pair[0] > (top?.[0] ?? 0) ? pair : top), null);
  return best === null ? null : [best[1], best[2]];
}

/** How the two streams are called in the query: one that is joined with itself has two names. */
function aliasesOf(r: Known, s: Known, join = ', '): [from: string, mine: string, other: string] {
  const [mine, other] = [nameOf(r.name), nameOf(s.name)];
  return r.name === s.name ? [`${mine} AS a${join}${other} AS b`, 'a', 'b'] : [`${mine}${join}${other}`, mine, other];
}

/** What is shown of a pair: the columns that it was found by, and the first other one of either stream. */
function selected(r: Known, s: Known, pair: [Column, Column]): string {
  const [, mine, other] = aliasesOf(r, s);
  const rest = (of: Known, used: Column) => of.columns.find(({ name }) => name !== used.name && name !== of.time);
  const items: [alias: string, column: Column | undefined][] = [
    [mine, pair[0]],
    [mine, rest(r, pair[0])],
    [other, pair[1]],
    [other, rest(s, pair[1])],
  ];
  const taken = new Set<string>();
  const shown: string[] = [];
  for (const [alias, column] of items) {
    if (column === undefined) continue;
    const isTaken = taken.has(column.name);
    const result = isTaken ? `${alias.replaceAll('"', '')}_${column.name}` : column.name;
    if (taken.has(result)) continue;
    taken.add(result);
    shown.push(`${alias}.${nameOf(column.name)}${isTaken ? ` AS ${nameOf(result)}` : ''}`);
  }
  return shown.join(', ');
}

type Condition = (mine: string, other: string) => string;

function joined(r: Known, s: Known, pair: [Column, Column], condition: Condition): string {
  const [from, mine, other] = aliasesOf(r, s);
  return [
    `SELECT ONLINE ${selected(r, s, pair)}`,
    `FROM ${from}`,
    `WHERE ${condition(`${mine}.${nameOf(pair[0].name)}`, `${other}.${nameOf(pair[1].name)}`)}`,
    'WITHIN 10 SECONDS',
  ].join('\n');
}

function equality(r: Known, s: Known): string | null {
  const keys = bestPair(r, s, (mine, other) => likeness(r, mine, s, other));
  return keys && joined(r, s, keys, (mine, other) => `${mine} = ${other}`);
}

function band(r: Known, s: Known): string | null {
  const isMeasure = (of: Known, { name, type }: Column) =>
    kindOf(type) === 'number' && name !== of.time && !isId(name) && !pointsTo(r.name, name) && !pointsTo(s.name, name);
  const values = bestPair(r, s, (mine, other) =>
    !isMeasure(r, mine) || !isMeasure(s, other) ? 0 : mine.name === other.name ? 2 : 1,
  );
  return values && joined(r, s, values, (mine, other) => `${mine} BETWEEN ${other} - 10 AND ${other} + 10`);
}

/** How many pairs there are of each key, in each minute or kept up to date. */
function counted(r: Known, s: Known, given: 'each minute' | 'again'): string | null {
  const keys = bestPair(r, s, (mine, other) => likeness(r, mine, s, other));
  if (keys === null) return null;
  const [from, mine, other] = aliasesOf(r, s);
  const [key, partner] = [`${mine}.${nameOf(keys[0].name)}`, `${other}.${nameOf(keys[1].name)}`];
  const [since, by] = given === 'again' ? ['', '\nEMIT EVERY 1 SECOND'] : [', WINDOW_START() AS since', ', TUMBLE(1 MINUTE)'];
  return [
    `SELECT ONLINE ${key}${since}, COUNT(*) AS n`,
    `FROM ${from}`,
    `WHERE ${key} = ${partner}`,
    'WITHIN 10 SECONDS',
    `GROUP BY ${key}${by}`,
  ].join('\n');
}

/** Each row of the first stream with the latest row of the second one that has its key. */
function latest(r: Known, s: Known): string | null {
  const keys = r.time === ARRIVAL || s.time === ARRIVAL ? null : bestPair(r, s, (a, b) => likeness(r, a, s, b));
  if (keys === null) return null;
  const [from, mine, other] = aliasesOf(r, s, ' ASOF LEFT JOIN ');
  const equal = `${mine}.${nameOf(keys[0].name)} = ${other}.${nameOf(keys[1].name)}`;
  return [
    `SELECT ONLINE ${selected(r, s, keys)}`,
    `FROM ${from}`,
    `ON ${equal} AND ${mine}.${nameOf(r.time)} >= ${other}.${nameOf(s.time)}`,
  ].join('\n');
}

/** Rows of the first stream that no row of the second one matches. */
function withoutMatch(r: Known, s: Known): string | null {
  const keys = bestPair(r, s, (mine, other) => likeness(r, mine, s, other));
  if (keys === null) return null;
  const [from, mine, other] = aliasesOf(r, s, ' LEFT ANTI JOIN ');
  return [
    `SELECT ONLINE ${mine}.*`,
    `FROM ${from}`,
    `ON ${mine}.${nameOf(keys[0].name)} = ${other}.${nameOf(keys[1].name)}`,
    'WITHIN 10 SECONDS',
  ].join('\n');
}

const filled = (query: string | null, ordering = ''): Filled | null => (query === null ? null : { query, ordering });

export const TEMPLATES: Template[] = [
  { title: 'Equal keys', note: 'rows with the same key, within a window', fill: (r, s) => filled(equality(r, s)) },
  { title: 'Close values', note: 'a band: numbers that differ little', fill: (r, s) => filled(band(r, s)) },
  {
    title: 'In order of time',
    note: 'equal keys, and every result leaves in the total order of event time',
    fill: (r, s) => filled(equality(r, s), 'total'),
  },
  {
    title: 'Count by key a minute',
    note: 'pairs in groups: how many there are of each key in each minute',
    fill: (r, s) => filled(counted(r, s, 'each minute')),
  },
  {
    title: 'Count by key, live',
    note: 'groups that change: how many pairs of each key there are just now, given again as it changes',
    fill: (r, s) => filled(counted(r, s, 'again')),
  },
  {
    title: 'Without a match',
    note: 'rows of the first stream that no row of the second one matches, such as orders without a payment',
    fill: (r, s) => filled(withoutMatch(r, s)),
  },
  {
    title: 'Latest value',
    note: 'each row with the latest row of its key that is not newer, such as a trade with its quote',
    fill: (r, s) => filled(latest(r, s)),
  },
];
