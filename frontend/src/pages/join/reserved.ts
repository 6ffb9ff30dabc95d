/**
 * Words that the language does not take for the name of a stream or column unless they are in double quotes.
 * `tests/unit/query/test_query_reserved.py` tries every word that its parser knows.
 */
export const RESERVED: ReadonlySet<string> = new Set(
  (
    'all alter and any as between connect_by_root create cross cube current_catalog current_date current_time ' +
    'current_timestamp current_user describe distinct drop else except false fetch for force from glob grant group having ilike inner ' +
    'insert install intersect into join lateral like limit localtime localtimestamp lock map natural not notnull null ' +
    'offset on only or outer over partitioned_by pivot pivot_wider positional qualify regexp returning revoke rlike ' +
    'rollback rollup select session_user summarize tablesample then true uncache union unpivot using values when ' +
    'where window with within xor'
  ).split(' '),
);
