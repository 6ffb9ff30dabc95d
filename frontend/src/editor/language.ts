/** The query language as CodeMirror knows it: SQL with ONLINE, WITHIN and windows of groups. */
import type { LanguageSupport } from '@codemirror/language';
import { sql, SQLDialect } from '@codemirror/lang-sql';

const KEYWORDS =
  'select online from inner cross asof left right full outer semi anti join on using where within for and or not as between in is null like ' +
  'ilike distinct unknown case when then else end true false timestamp date interval rows group by having tumble hop cumulative emit every ' +
  'microseconds milliseconds millisecond seconds second minutes minute hours hour days day';

const FUNCTIONS =
  'abs cast ceil ceiling char_length coalesce concat contains date_trunc day dow doy ends_with epoch ' +
  'extract floor greatest hour if least left length lower microsecond millisecond minute mod month ' +
  'nullif pow power quarter regexp_like replace reverse right round second split_part sqrt starts_with ' +
  'substr substring trim upper week year';

/** What is computed of groups. */
const AGGREGATES =
  'approx_count_distinct approx_quantile arg_max arg_min avg bool_and bool_or count max mean min stddev ' +
  'stddev_pop stddev_samp sum var_pop var_samp variance window_end window_start';

/** What says of a relation's row from when it is. */
const OF_RELATIONS = 'version';

const dialect = SQLDialect.define({
  keywords: KEYWORDS,
  builtin: `${FUNCTIONS} ${AGGREGATES} ${OF_RELATIONS}`,
  caseInsensitiveIdentifiers: false,
});

/**
 * @param columns column names by stream.
 */
export const joinLanguage = (columns: Record<string, string[]>): LanguageSupport =>
  sql({ dialect, schema: columns, upperCaseKeywords: true });
