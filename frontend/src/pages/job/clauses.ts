/** A query that was written in one line, with a line for each of its clauses. */

const WORDS = 'FROM|WHERE|WITHIN|GROUP\\s+BY|HAVING|(?:(?:LEFT|RIGHT|FULL|INNER|OUTER|SEMI|ANTI|ASOF)\\s+)*JOIN';
/** Texts and quoted names are passed over; in parentheses a word is no clause of the query. */
const PARTS = new RegExp(`'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|\\s+\\b(?:${WORDS})\\b`, 'gi');

/** Only spaces become ends of lines; what has lines already, or a comment, stays as it is. */
export function inClauses(query: string): string {
  const text = query.trim();
  if (/\n|--|\/\*/.test(text)) return text;
  let depth = 0;
  return text.replace(PARTS, (part) => {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    return depth === 0 && /^\s/.test(part) ? `\n${part.trimStart()}` : part;
  });
}
