/** The query language as CodeMirror knows it: SQL with ONLINE and WITHIN. */
import type { LanguageSupport } from '@codemirror/language';
import { sql, SQLDialect } from '@codemirror/lang-sql';

const KEYWORDS =
  'select online from inner cross join on using where within and or not as between in is null like ilike ' +
  'distinct unknown case when then else end true false timestamp date interval rows microseconds ' +
  'milliseconds millisecond seconds second minutes minute hours hour days day';

const FUNCTIONS =
  'abs cast ceil ceiling char_length coalesce concat contains date_trunc day dow doy ends_with epoch ' +
  'extract floor greatest hour if least left length lower microsecond millisecond minute mod month ' +
  'nullif pow power quarter regexp_like replace reverse right round second split_part sqrt starts_with ' +
  'substr substring trim upper week year';

const dialect = SQLDialect.define({ keywords: KEYWORDS, builtin: FUNCTIONS, caseInsensitiveIdentifiers: false });

/**
 * @param columns column names by stream.
 */
export const joinLanguage = (columns: Record<string, string[]>): LanguageSupport =>
  sql({ dialect, schema: columns, upperCaseKeywords: true });
