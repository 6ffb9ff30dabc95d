/** The query language as CodeMirror knows it: SQL with ONLINE and WITHIN. */
import type { LanguageSupport } from '@codemirror/language';
import { sql, SQLDialect } from '@codemirror/lang-sql';

const KEYWORDS =
  'select online from where within and or not as between in is null like case when then else end true false ' +
  'interval rows milliseconds millisecond seconds second minutes minute hours hour days day';

const FUNCTIONS = 'abs ceil floor round sqrt length lower upper coalesce cast extract';

const dialect = SQLDialect.define({ keywords: KEYWORDS, builtin: FUNCTIONS, caseInsensitiveIdentifiers: false });

/**
 * @param columns column names by stream.
 */
export const joinLanguage = (columns: Record<string, string[]>): LanguageSupport =>
  sql({ dialect, schema: columns, upperCaseKeywords: true });
