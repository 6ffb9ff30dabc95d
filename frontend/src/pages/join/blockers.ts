/** What keeps a join from being created, in the order in which it is best done. */

import { formatCount } from '../../format';

interface Asked {
  query: string;
  name: string;
  mayCreate: boolean;
  /** An answer to what is typed now is still on its way. */
  isChecking: boolean;
  /** Undefined where nobody answered. */
  isValid: boolean | undefined;
  mistakesInQuery: number;
  /** Labels of the fields that are wrong. */
  wrongFields: string[];
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._ -]{0,99}$/;

/** The API takes no longer query; it counts characters, and not units of UTF-16. */
const QUERY_MAX = 65_536;

/** What is wrong with a query of this length; null where nothing is. */
export function tooLong(query: string): string | null {
  const length = query.length > QUERY_MAX ? [...query].length : query.length;
  if (length <= QUERY_MAX) return null;
  return `the query has ${formatCount(length)} characters, and ${formatCount(QUERY_MAX)} is the most`;
}

function ofQuery({ query, isChecking, isValid, mistakesInQuery, wrongFields }: Asked): string | null {
  if (query.trim() === '') return 'write a query, or begin with one of the templates';
  const long = tooLong(query);
  if (long !== null) return long;
  if (isChecking) return 'the query is being checked';
  if (isValid === true) return null;
  if (isValid === undefined) return 'the query could not be checked';
  if (mistakesInQuery === 0 && wrongFields.length > 0) return `change what is wrong in ${wrongFields.join(', ')}`;
  return 'mend the mistake in the query';
}

function ofName(name: string): string | null {
  if (name === '') return 'give the job a name';
  return NAME.test(name) ? null : 'give it a name of letters, digits, blanks, ., _ and -, a letter or digit first';
}

export function blockersOf(asked: Asked): string[] {
  if (!asked.mayCreate) return ['ask an admin for the role operator: viewers look, and create nothing'];
  return [ofQuery(asked), ofName(asked.name.trim())].filter((reason) => reason !== null);
}
