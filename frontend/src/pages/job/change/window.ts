/** The window of a query, its last clause but for groups: read out of the text, and put back into it. */

const TEXT_OR_COMMENT = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|\/\*[\s\S]*?\*\//g;
const WITHIN = /\bWITHIN\b/gi;
const GROUPS = /[()]|\b(?:GROUP\s+BY|HAVING|EMIT\s+EVERY)\b/gi;
const END = /[\s;]*$/;

/** The same text with texts, names in quotes and comments blanked, so that only words of the language are found. */
const bare = (query: string): string => query.replace(TEXT_OR_COMMENT, (part) => ' '.repeat(part.length));

interface Place {
  from: number;
  to: number;
}

/** Where the clauses end that may stand before groups: before the first GROUP BY that is in no brackets, or at the end. */
function endOf(words: string): number {
  let depth = 0;
  for (const found of words.matchAll(GROUPS)) {
    if (found[0] === '(') depth++;
    else if (found[0] === ')') depth--;
    else if (depth === 0) return words.slice(0, found.index).search(END);
  }
  return words.search(END);
}

/** Where WITHIN and its window stand. */
function placeOf(query: string): Place | null {
  const words = bare(query);
  const last = [...words.matchAll(WITHIN)].at(-1);
  if (last === undefined) return null;
  return { from: last.index, to: last.index + endOf(words.slice(last.index)) };
}

/** Such as "10 SECONDS"; empty where the query has no window. */
export function windowOf(query: string): string {
  const place = placeOf(query);
  return place === null ? '' : query.slice(place.from + 'WITHIN'.length, place.to).trim();
}

/** The query with another window, or without one. */
export function withWindow(query: string, window: string): string {
  const place = placeOf(query);
  if (place !== null) {
    const before = query.slice(0, place.from);
    const after = query.slice(place.to);
    return window === '' ? before.trimEnd() + after : `${before}WITHIN ${window}${after}`;
  }
  if (window === '') return query;
  const end = endOf(bare(query));
  return `${query.slice(0, end)}\nWITHIN ${window}${query.slice(end)}`;
}
