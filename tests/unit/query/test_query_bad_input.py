"""What is refused, where the error points, and what it says."""

from __future__ import annotations

import pytest

from streamjoin.errors import QueryError, UnsupportedError

HEAD = "SELECT ONLINE R.k FROM R, S"

NOT_A_QUERY = [
    ("", 1, 1, "the query is empty; write SELECT ONLINE"),
    (" \n -- nothing", 1, 1, "the query is empty"),
    (";", 1, 1, "the query is empty"),
    ("SELECT", 1, 1, "a join over streams is SELECT ONLINE"),
    ("SELECT R.k FROM R, S", 1, 1, "write: SELECT ONLINE R.k FROM R, S"),
    ("SELECT ONLINE", 1, 1, "no FROM"),
    ("SELECT ONLINE FROM R, S", 1, 1, "at least one column"),
    (HEAD + "; SELECT ONLINE 1", 1, 28, "one query at a time"),
    ("DROP TABLE jobs", 1, 1, 'not with "DROP"'),
    ("SET spark.x = 1", 1, 1, 'not with "SET"'),
    ("ADD JAR evil.jar", 1, 1, 'not with "ADD"'),
    ("CREATE FUNCTION f AS 'x'", 1, 1, 'not with "CREATE"'),
    ("FROM R, S SELECT ONLINE R.k", 1, 1, 'not with "FROM"'),
    ("EXPLAIN " + HEAD, 1, 1, 'not with "EXPLAIN"'),
    ("SЕLECT ONLINE R.k FROM R, S", 1, 1, "only look like Latin"),
    ("SELECT ONLINE R.k\nFRОM R, S", 2, 6, '"FRОM" has letters that only look like Latin'),
    ("'; DROP TABLE jobs--", 1, 1, "' is opened here and never closed"),
    ("SELECT ONLINE R.k\nFROM R, S WHERE name = 'x", 2, 24, "' is opened here and never closed"),
    ('SELECT ONLINE "R.k FROM R, S', 1, 15, '" is opened here and never closed'),
    ("SELECT ONLINE `R.k FROM R, S", 1, 15, "` is opened here and never closed"),
    ("SELECT ONLINE /* R.k FROM R, S", 1, 15, "/* is opened here and never closed"),
    ("SELECT ONLINE `a'b`, ' FROM R, S", 1, 15, "` is opened here and never closed"),
    ('SELECT ONLINE `a"b"c` FROM R, S', 1, 15, "a name in backticks"),
    ("SELECT ONLINE R.\0k FROM R, S", 1, 17, "NUL character"),
    ("SELECT ONLINE '\ud800' FROM R, S", 1, 16, "surrogate"),
]

WINDOWS = [
    (HEAD + " WITHIN", 1, 29, "takes a number and a unit"),
    (HEAD + " WITHIN 10", 1, 36, "needs a unit"),
    (HEAD + " WITHIN -1 MINUTES", 1, 36, "no negative number"),
    (HEAD + " WITHIN 1e30 MINUTES", 1, 36, "longer than 100 years"),
    (HEAD + " WITHIN 1e999 MINUTES", 1, 36, "longer than 100 years"),
    (HEAD + " WITHIN 1e99999 MINUTES", 1, 36, "is not a number"),
    (HEAD + " WITHIN 36526 DAYS", 1, 36, "longer than 100 years"),
    (HEAD + " WITHIN '1 month'", 1, 36, "takes a number and a unit"),
    (HEAD + " WITHIN INTERVAL 1 DAY", 1, 36, "takes a number and a unit"),
    (HEAD + " WITHIN 1 MONTH", 1, 36, "a MONTH has no fixed length"),
    (HEAD + " WITHIN 2 YEARS", 1, 36, "a YEAR has no fixed length"),
    (HEAD + " WITHIN 10 FURLONGS", 1, 36, '"FURLONGS" is not a unit of time'),
    (HEAD + " WITHIN 1.5 MICROSECONDS", 1, 36, "not a whole number of microseconds"),
    (HEAD + " WITHIN 0 ROWS", 1, 36, "a whole number from 1"),
    (HEAD + " WITHIN -5 ROWS", 1, 36, "no negative number"),
    (HEAD + " WITHIN 1.5 ROWS", 1, 36, "a whole number from 1"),
    (HEAD + " WITHIN 99999999999999999999999 ROWS", 1, 36, "a whole number from 1"),
    (HEAD + " WITHIN (5 SECONDS)", 1, 46, "this WITHIN cannot be read"),
    (HEAD + " WITHIN (5 SECONDS, 5 ROWS)", 1, 48, "a window of time"),
    (HEAD + " WITHIN (5 SECONDS, -5 SECONDS)", 1, 48, "no negative number"),
    (HEAD + " WITHIN 5 SECONDS FOR R, 1 MINUTE FOR T", 1, 66, 'the query reads no stream "T"; there are R, S'),
    (HEAD + " WITHIN 5 SECONDS FOR R", 1, 29, "S has no reach in this WITHIN; add 10 SECONDS FOR S"),
    (HEAD + " WITHIN 5 SECONDS FOR R, 5 SECONDS FOR r", 1, 67, "R has two reaches"),
    (HEAD + " WITHIN 5 SECONDS FOR R, 5 SECONDS", 1, 55, "every span of this WITHIN is for a stream"),
    (HEAD + " WITHIN 5 SECONDS FOR", 1, 46, "FOR takes the name of a stream"),
    (HEAD + " WITHIN 5 SECONDS FOR R, 5 ROWS FOR S", 1, 53, "a window of two sides is a window of time"),
    (HEAD + " WITHIN 5 ROWS FOR R", 1, 43, '"FOR" cannot follow'),
    (HEAD + " WITHIN (5 SECONDS, 5 SECONDS) FOR R", 1, 59, '"FOR" cannot follow'),
    (HEAD + " WITHIN 5 SECONDS WHERE R.ok", 1, 46, '"WHERE" cannot follow'),
    (HEAD + " WITHIN 5 SECONDS WITHIN 5 ROWS", 1, 46, '"WITHIN" cannot follow'),
    (HEAD + " WHERE (R.ok WITHIN 5 SECONDS)", 1, 41, "cannot stand in brackets"),
    (HEAD + " WHERE within = 5", 1, 42, "takes a number and a unit"),
]

SYNTAX = [
    ("SELECT ONLINE R.k FROM select, R", 1, 24, "select is a reserved word; where it is the name of a stream, quote"),
    ("SELECT ONLINE R.k FROM R, from", 1, 27, 'quote it: "from"'),
    ("SELECT ONLINE select.k FROM R, S", 1, 15, 'quote it: "select"'),
    ("SELECT ONLINE R.k FROM R JOIN where ON R.k = 1", 1, 31, 'quote it: "where"'),
    (HEAD + " WHERE", 1, 29, "an operand is missing"),
    (HEAD + " WHERE R.k = ", 1, 39, "an operand is missing"),
    (HEAD + " WHERE R.k = = S.k", 1, 41, "an operand is missing"),
    (HEAD + " WHERE (R.k = S.k", 1, 44, "closing bracket is missing"),
    (HEAD + " WHERE CAST(R.k AS INT = S.k", 1, 39, "this bracket is never closed"),
    ("SELECT ONLINE EXTRACT(year FROM R.ts FROM R, S", 1, 22, "this bracket is never closed"),
    (HEAD + " WHERE R.k = S.k)", 1, 44, '")" cannot stand here'),
    ("SELECT ONLINE R.k, FROM R, S", 1, 18, "an item is missing"),
    ("SELECT ONLINE R.k,, S.k FROM R, S", 1, 18, "an item is missing"),
    ("SELECT ONLINE R.k FROM R,", 1, 25, "an item is missing"),
    ("SELECT ONLINE R.k one two FROM R, S", 1, 23, '"two" cannot stand here'),
    ("SELECT ONLINE 0x1F FROM R, S", 1, 15, '"0x1F" is not a number, name or string'),
    ("SELECT ONLINE R.k'a' FROM R, S", 1, 17, "is not a number, name or string"),
    ("SELECT ONLINE R.k FROM R JOIN S", 1, 26, "JOIN needs a condition"),
    (HEAD + " WHERE R.k IN ()", 1, 35, "IN needs a list"),
    (HEAD + " WHERE R.name = '\U0001f355' AND", 1, 48, "an operand is missing"),
    (HEAD + " WHERE R.k IS S.k", 1, 35, "IS stands before [NOT] NULL, TRUE"),
    (HEAD + " WHERE R.name LIKE 'a' ESCAPE '!'", 1, 35, "is not part of the query language"),
    (HEAD + " WHERE R.k BETWEEN SYMMETRIC 1 AND 2", 1, 35, "is not part of the query language"),
    (HEAD + " WHERE R.name[1] = 'a'", 1, 41, "no lists and subscripts"),
    (HEAD + " WHERE f(x -> x)", 1, 39, "no lambdas"),
    (HEAD + " WHERE R.k == S.k", 1, 39, "write ="),
    (HEAD + " WHERE R.k ** 9 ** 9 = 1", 1, 39, "write POWER"),
    (HEAD + " WHERE R.k ^ 2 = 1", 1, 39, "write POWER"),
    (HEAD + " WHERE R.k // 2 = 1", 1, 39, "write FLOOR"),
    (HEAD + " WHERE R.name ~ 'a'", 1, 42, "write REGEXP_LIKE"),
    (HEAD + " WHERE @R.k = 1", 1, 35, "write ABS"),
    (HEAD + " WHERE R.k = ?", 1, 41, "no parameters"),
    (HEAD + " WHERE R.k = $1", 1, 41, "no parameters"),
    (HEAD + " WHERE R.name = $$a$$", 1, 44, "is not part of the query language"),
    (HEAD + " WHERE R.name = 'a' 'b'", 1, 44, "is not part of the query language"),
    (HEAD + " WHERE (R.k, R.x) = (1, 2)", 1, 36, "is not part of the query language"),
    ("SELECT ONLINE a: R.k FROM R, S", 1, 16, "is not part of the query language"),
    ("SELECT ONLINE ().__class__.__bases__[0] FROM R, S", 1, 37, "no lists and subscripts"),
    ("SELECT ONLINE '{0.__class__}'.format(R.k) FROM R, S", 1, 15, "is not part of the query language"),
    ("SELECT ONLINE R.k, current_timestamp FROM R, S", 1, 20, "is not part of the query language"),
    ("SELECT ONLINE TRY_CAST(R.k AS INT) FROM R, S", 1, 24, "is not part of the query language"),
]

NAMES = [
    ("SELECT ONLINE k FROM R SEMI JOIN S ON k = S.k WITHIN 5 SECONDS", 1, 39, '"k" can be R.k or S.k'),
    ("SELECT ONLINE R.k FROM R LEFT JOIN S WITHIN 5 SECONDS", 1, 31, "JOIN needs a condition"),
    (
        "SELECT ONLINE R.k, S.k FROM R SEMI JOIN S ON R.k = S.k WITHIN 5 SECONDS",
        1,
        20,
        "gives rows of the streams before",
    ),
    ("SELECT ONLINE S.* FROM R ANTI JOIN S ON R.k = S.k WITHIN 5 SECONDS", 1, 15, "gives rows of the streams before"),
    (
        "SELECT ONLINE R.k FROM R SEMI JOIN S ON R.k = S.k WHERE S.k > 1 WITHIN 5 SECONDS",
        1,
        57,
        "S is joined by LEFT SEMI or LEFT ANTI JOIN",
    ),
    (HEAD[:-1] + "T", 1, 27, 'there is no stream "T"; there are R, S'),
    ("SELECT ONLINE 1 AS a\nFROM R, R", 2, 9, "FROM R AS a, R AS b"),
    ("SELECT ONLINE 1 AS a FROM R, S R", 1, 30, 'calls two streams "R"'),
    ("SELECT ONLINE 1 AS a FROM R a, R A", 1, 32, 'calls the same stream "A"'),
    ("SELECT ONLINE R.k,\n  R.nmae FROM R, S", 2, 3, 'there is no column "R.nmae"; did you mean R.name?'),
    ("SELECT ONLINE lable FROM R, S", 1, 15, 'there is no column "lable"; did you mean S.label?'),
    ("SELECT ONLINE zzz FROM R, S", 1, 15, "there are R.k or S.k, R.x"),
    ("SELECT ONLINE k FROM R, S", 1, 15, '"k" can be R.k or S.k'),
    ("SELECT ONLINE T.k FROM R, S", 1, 15, 'the query reads "R" and "S"'),
    ("SELECT ONLINE R.k FROM R a, S", 1, 15, 'here "R" is called "a"'),
    ('SELECT ONLINE "\U0001f355" FROM R, S', 1, 15, 'there is no column "\U0001f355"'),
    ("SELECT ONLINE '\U0001f355' AS a, R.b FROM R, S", 1, 25, 'there is no column "R.b"'),
    ('SELECT ONLINE R.k FROM R, S WHERE R.name = "pizza"', 1, 44, "a text stands in single quotes: 'pizza'"),
    ("SELECT ONLINE T.* FROM R, S", 1, 15, 'there is no stream "T" in FROM'),
    ('SELECT ONLINE "a`b" FROM R, S', 1, 15, 'there is no column "a`b"'),
    ('SELECT ONLINE "a""b" FROM R, S', 1, 15, 'there is no column "a"b"'),
    ("SELECT ONLINE x.R.k FROM R, S", 1, 15, 'there is no stream "x" in FROM'),
    ("SELECT ONLINE R.k a, S.k A FROM R, S", 1, 22, 'called "A": R.k a and S.k A'),
    ("SELECT ONLINE R.k, R.k FROM R, S", 1, 20, 'called "R_k"'),
    ("SELECT ONLINE R.k AS __time FROM R, S", 1, 15, "two underscores"),
    ('SELECT ONLINE R.k AS "" FROM R, S', 1, 15, "names are not empty"),
    ("SELECT ONLINE * EXCLUDE (k) FROM R, S", 1, 25, "cannot stand here"),
    ("SELECT ONLINE reflect('java.lang.System', 'exit', 1) FROM R, S", 1, 15, "no function reflect"),
    ("SELECT ONLINE java_method('a', 'b') FROM R, S", 1, 15, "no function java_method"),
    ("SELECT ONLINE try_reflect('a', 'b') FROM R, S", 1, 15, "no function try_reflect"),
    ("SELECT ONLINE __import__('os') FROM R, S", 1, 15, "no function __import__"),
    ("SELECT ONLINE random() FROM R, S", 1, 15, "no function random"),
    ("SELECT ONLINE lenght(name) FROM R, S", 1, 15, "did you mean LENGTH or LEFT?"),
    ('SELECT ONLINE "lenght"(name) FROM R, S', 1, 15, "did you mean LENGTH or LEFT?"),
    ("SELECT ONLINE naer(x, y) FROM R, S", 1, 15, "did you mean near"),
]

USING = [
    ("SELECT ONLINE R.k FROM R JOIN S USING k", 1, 33, "USING takes the names"),
    ("SELECT ONLINE R.k FROM R JOIN S USING", 1, 33, "USING takes the names"),
    ("SELECT ONLINE R.k FROM R JOIN S USING ()", 1, 33, "USING takes the names"),
    ("SELECT ONLINE R.k FROM R JOIN S USING (k", 1, 33, "USING takes the names"),
    ("SELECT ONLINE R.k FROM R JOIN S USING (R.k)", 1, 33, "USING takes the names"),
    ("SELECT ONLINE R.k FROM R JOIN S USING (k, 1)", 1, 33, "USING takes the names"),
    ("SELECT ONLINE R.k FROM R JOIN S USING (k) AND TRUE", 1, 43, '"AND" cannot stand here'),
    ("SELECT ONLINE R.k FROM R, S USING (k)", 1, 29, '"USING" cannot stand here'),
    ("SELECT ONLINE R.k FROM R CROSS JOIN S USING (k)", 1, 46, "CROSS JOIN takes no USING; write JOIN"),
    ("SELECT ONLINE R.k FROM R JOIN S USING (k, lable)", 1, 43, 'R has no column "lable", and USING needs one of each'),
    ("SELECT ONLINE R.k FROM R JOIN S USING (label)", 1, 40, 'R has no column "label"'),
    ("SELECT ONLINE R.k FROM R JOIN S USING (name)", 1, 40, 'S has no column "name"'),
    ("SELECT ONLINE R.k FROM R JOIN S USING (k, K)", 1, 43, '"K" stands twice in USING'),
    ("SELECT ONLINE k, k FROM R JOIN S USING (k)", 1, 18, 'two output columns are called "k"'),
]

TYPES = [
    (HEAD + " WHERE R.k > S.label", 1, 35, ">: cannot compare int64 with string (R.k with S.label); write CAST"),
    (HEAD + " WHERE R.k = '7'", 1, 35, "=: cannot compare int64 with string"),
    (HEAD + " WHERE R.ok > 1", 1, 35, "cannot compare bool with int64"),
    (HEAD + " WHERE R.ts > 5", 1, 35, "cannot compare timestamp with int64"),
    (HEAD + " WHERE R.ts > 'tomorrow'", 1, 35, "'tomorrow' is no timestamp"),
    (HEAD + " WHERE R.day > '2024-02-30'", 1, 35, "not a valid date or time"),
    (HEAD + " WHERE R.ts > TIMESTAMP 'soon'", 1, 52, "'soon' is no timestamp"),
    (HEAD + " WHERE R.x", 1, 35, "a condition is true or false; this is float64"),
    (HEAD + " WHERE R.ok AND\n R.x", 2, 2, "a condition is true or false; this is float64"),
    (HEAD + " WHERE NOT R.k", 1, 39, "a condition is true or false; this is int64"),
    (HEAD + " WHERE 1", 1, 35, "a condition is true or false; this is int64"),
    (HEAD + " WHERE R.k IS TRUE", 1, 35, "a condition is true or false; this is int64"),
    (HEAD + " WHERE R.k IS DISTINCT FROM '7'", 1, 35, "IS [NOT] DISTINCT FROM: cannot compare int64 with string"),
    (HEAD + " WHERE R.k < S.k < 3", 1, 35, "cannot compare bool with int64"),
    ("SELECT ONLINE R.x + R.name FROM R, S", 1, 15, "+: takes two numbers, not string"),
    ("SELECT ONLINE R.x % 2 FROM R, S", 1, 15, "%: takes two integers, not float64"),
    ("SELECT ONLINE -R.name FROM R, S", 1, 16, "-: takes a number, not string"),
    ("SELECT ONLINE R.name || R.k FROM R, S", 1, 15, "||: takes strings, not int64"),
    ("SELECT ONLINE ABS(R.name) FROM R, S", 1, 15, "ABS: takes a number, not string"),
    ("SELECT ONLINE ROUND(R.x, 2, 3) FROM R, S", 1, 15, "ROUND: takes 1 to 2 arguments, not 3"),
    ("SELECT ONLINE ROUND(R.x, 1e0) FROM R, S", 1, 15, "ROUND: takes an integer of digits, not float64"),
    ("SELECT ONLINE ROUND(R.x, R.k) FROM R, S", 1, 15, "argument 2 of ROUND must be a constant"),
    ("SELECT ONLINE EXTRACT(century FROM R.ts) FROM R, S", 1, 36, "EXTRACT knows no CENTURY; it knows year, quarter"),
    ("SELECT ONLINE EXTRACT(year, R.ts) FROM R, S", 1, 15, "such as EXTRACT(hour FROM t)"),
    ("SELECT ONLINE EXTRACT(R.k FROM R.ts) FROM R, S", 1, 15, "such as EXTRACT(hour FROM t)"),
    ("SELECT ONLINE EXTRACT(year FROM R.k) FROM R, S", 1, 33, "YEAR: takes a timestamp or date, not int64"),
    ("SELECT ONLINE DATE_TRUNC('century', R.ts) FROM R, S", 1, 15, "DATE_TRUNC knows no unit 'century'; units are"),
    ("SELECT ONLINE DATE_TRUNC(R.name, R.ts) FROM R, S", 1, 15, "argument 1 of DATE_TRUNC must be a constant"),
    ("SELECT ONLINE DATE_TRUNC('day', R.name) FROM R, S", 1, 15, "takes a unit and a timestamp or date, not string"),
    ("SELECT ONLINE IF(R.k, 1, 2) FROM R, S", 1, 15, "IF: takes a condition first, not int64"),
    ("SELECT ONLINE IF(R.ok, 1) FROM R, S", 1, 15, "IF: takes 3 arguments, not 2"),
    ("SELECT ONLINE IF(R.ok, 1, 'a') FROM R, S", 1, 15, "IF: cannot mix int64 and string"),
    ("SELECT ONLINE LEFT(R.name, R.k) FROM R, S", 1, 15, "argument 2 of LEFT must be a constant"),
    ("SELECT ONLINE RIGHT(R.k, 2) FROM R, S", 1, 15, "RIGHT: takes a string and an integer, not int64"),
    ("SELECT ONLINE SPLIT_PART(R.name, ',', 0) FROM R, S", 1, 15, "there is no part 0"),
    ("SELECT ONLINE SPLIT_PART(R.name, '', 1) FROM R, S", 1, 15, "SPLIT_PART needs a separator"),
    ("SELECT ONLINE R.name ILIKE S.label FROM R, S", 1, 15, "argument 2 of ILIKE must be a constant"),
    ("SELECT ONLINE R.name ILIKE 'a' ESCAPE 'b' FROM R, S", 1, 15, "is not part of the query language"),
    ("SELECT ONLINE R.name LIKE S.label FROM R, S", 1, 15, "argument 2 of LIKE must be a constant"),
    ("SELECT ONLINE SUBSTRING(R.name, R.k) FROM R, S", 1, 15, "argument 2 of SUBSTRING must be a constant"),
    ("SELECT ONLINE REGEXP_LIKE(R.name, '(a') FROM R, S", 1, 35, "REGEXP_LIKE: Invalid regular expression"),
    ("SELECT ONLINE near(R.x) FROM R, S", 1, 15, "near takes 2 arguments, not 1"),
    ("SELECT ONLINE near(R.x, R.name) FROM R, S", 1, 25, "argument 2 of near is float64, not string"),
    ("SELECT ONLINE NULL FROM R, S", 1, 15, "NULL alone has no type"),
    ("SELECT ONLINE R.k IS DISTINCT FROM 1 AS a, NULL FROM R, S", 1, 44, "NULL alone has no type"),
    ("SELECT ONLINE CAST(R.day AS INT) FROM R, S", 1, 20, "date cannot become int32"),
    ("SELECT ONLINE CAST(R.ts AS INT) FROM R, S", 1, 20, "timestamp cannot become int32"),
    ("SELECT ONLINE CAST(R.x AS TIMESTAMP) FROM R, S", 1, 20, "float64 cannot become timestamp"),
    ("SELECT ONLINE CAST(R.k AS money) FROM R, S", 1, 20, 'CAST knows no type "money"'),
    ("SELECT ONLINE CAST(R.k AS VARCHAR(3)) FROM R, S", 1, 27, "lengths are not checked"),
    ("SELECT ONLINE CAST(R.k AS DECIMAL(99, 2)) FROM R, S", 1, 20, "DECIMAL takes a precision from 1 to 38"),
    (f"SELECT ONLINE {'9' * 77} FROM R, S", 1, 15, "76 digits"),
    (f"SELECT ONLINE -0.{'9' * 77} FROM R, S", 1, 16, "76 digits"),
    ("SELECT ONLINE 1e999 FROM R, S", 1, 15, "outside float64"),
    ("SELECT ONLINE INTERVAL 1 MONTH AS a FROM R, S", 1, 15, "a MONTH has no fixed length"),
    ("SELECT ONLINE INTERVAL '1 day 2 hours' FROM R, S", 1, 24, "one number and one unit"),
    ("SELECT ONLINE INTERVAL (R.k) SECOND FROM R, S", 1, 25, "an interval is a constant"),
]

UNSUPPORTED = [
    ("SELECT ONLINE MEDIAN(R.x) FROM R, S", 1, 15, "MEDIAN is not supported yet; aggregate functions are COUNT, SUM,"),
    (HEAD + " WITHIN 5 ROWS GROUP BY R.k", 1, 29, "older than WITHIN, for which it is a span of time"),
    (HEAD + " ORDER BY R.k", 1, 29, "no end to sort by"),
    (HEAD + " LIMIT 5", 1, 29, "no end to sort by"),
    (HEAD + " OFFSET 5", 1, 36, "a clause that is not supported"),
    (HEAD + " WINDOW w AS ()", 1, 36, "a clause that is not supported"),
    (HEAD + " UNION SELECT ONLINE 1", 1, 29, "UNION, INTERSECT and EXCEPT"),
    ("SELECT ONLINE R.k FROM (SELECT 1), S", 1, 25, "subqueries and WITH"),
    (HEAD + " WHERE R.k IN (SELECT 1)", 1, 43, "subqueries and WITH"),
    (HEAD + " WHERE R.k IN (SELECT k FROM S)", 1, 43, "LEFT SEMI JOIN b ON"),
    (HEAD + " WHERE NOT EXISTS (SELECT 1)", 1, 47, "for NOT EXISTS a LEFT ANTI JOIN"),
    ("SELECT ONLINE R.k FROM R JOIN S FOR SYSTEM_TIME AS OF R.ts ON R.k = S.k", 1, 33, "meets the newest version"),
    ("SELECT ONLINE R.k FROM R JOIN S FOR SYSTEM_TIME AS OF PROCTIME() AS c", 1, 33, "leave it out"),
    ("SELECT ONLINE R.k FROM R JOIN S FOR TIMESTAMP AS OF R.ts ON R.k = S.k", 1, 33, "write ASOF JOIN"),
    ("SELECT ONLINE R.k FROM R JOIN broadcast(S) ON R.k = S.k", 1, 31, "there is nothing to broadcast"),
    ("SELECT ONLINE SUM(R.x) OVER () FROM R, S", 1, 24, "window functions"),
    ("SELECT ONLINE R.k FROM R LEFT JOIN S ON R.k = S.k", 1, 36, "over full history no row of LEFT JOIN is ever known"),
    ("SELECT ONLINE S.k FROM R RIGHT JOIN S ON R.k = S.k", 1, 37, "over full history no row of RIGHT JOIN is ever"),
    ("SELECT ONLINE R.k FROM R FULL JOIN S ON R.k = S.k", 1, 36, "over full history no row of FULL JOIN is ever known"),
    ("SELECT ONLINE R.k FROM R ANTI JOIN S ON R.k = S.k", 1, 36, "over full history no row of LEFT ANTI JOIN"),
    ("SELECT ONLINE R.k FROM R FULL JOIN S ON R.k = S.k WITHIN 5 ROWS", 1, 36, "windows of rows are for inner joins"),
    ("SELECT ONLINE R.k FROM R SEMI JOIN S ON R.k = S.k WITHIN 5 ROWS", 1, 36, "windows of rows are for inner joins"),
    ("SELECT ONLINE R.k FROM R RIGHT SEMI JOIN S ON R.k = S.k", 1, 42, "there is no RIGHT SEMI JOIN here; joins are"),
    ("SELECT ONLINE R.k FROM R OUTER JOIN S ON R.k = S.k", 1, 37, "there is no OUTER JOIN here; joins are"),
    ("SELECT ONLINE R.k FROM R NATURAL JOIN S", 1, 26, "NATURAL is not supported yet; name the columns"),
    ("SELECT ONLINE R.k FROM R", 1, 24, "a join needs two streams"),
    ("SELECT ONLINE R.k FROM R WITHIN 5 SECONDS", 1, 24, "a join needs two streams"),
    ("SELECT ONLINE R.k FROM R, S" + ", R" * 8, 1, 51, "joins 9 streams at most, and this one reads 10"),
    ("SELECT ONLINE R.k FROM R, (S JOIN R b ON b.k = S.k) AS x", 1, 56, "brackets in FROM have no name of their own"),
    (
        "SELECT ONLINE R.k FROM R, (S, R b) x (y)",
        1,
        36,
        "leave x (y) out, as the streams inside keep their names, such as S",
    ),
    ("SELECT ONLINE R.k FROM R, (S, R b) TABLESAMPLE (1)", 1, 27, "nothing stands behind brackets in FROM"),
    ("SELECT ONLINE R.k FROM R, ((S))", 1, 29, "brackets in FROM hold a join"),
    ("SELECT ONLINE R.k FROM csv.`/etc/passwd`, S", 1, 24, "registered streams by name only"),
    ("SELECT ONLINE R.k FROM read_csv('/etc/passwd'), S", 1, 24, "registered streams by name only"),
    (
        "SELECT ONLINE R.k FROM R JOIN S JOIN R b ON S.k = b.k ON R.k = S.k",
        1,
        31,
        "write them, such as FROM a LEFT JOIN",
    ),
    ("SELECT ONLINE R.k FROM R, (VALUES (1))", 1, 36, "registered streams by name only"),
    (
        "SELECT ONLINE R.k FROM (R), S",
        1,
        25,
        'brackets in FROM hold a join, such as (b JOIN c ON b.k = c.k); write "R" without them',
    ),
    ("SELECT ONLINE R.k FROM R TABLESAMPLE (1), S", 1, 24, "registered streams by name only"),
    ("SELECT ONLINE R.k FROM R, LATERAL S", 1, 27, "only registered streams can stand in FROM"),
    ("SELECT ONLINE R.k FROM R a (b), S", 1, 24, "cannot be renamed in FROM"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"), NOT_A_QUERY + WINDOWS + SYNTAX + NAMES + USING + TYPES + UNSUPPORTED
)
def test_a_bad_query_is_refused_at_its_place_and_by_name(plan, text, line, column, message):
    with pytest.raises(QueryError) as caught:
        plan(text)
    assert message in caught.value.message
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


@pytest.mark.parametrize("text", [row[0] for row in UNSUPPORTED])
def test_good_sql_without_an_operator_for_it_is_called_unsupported(plan, text):
    with pytest.raises(UnsupportedError):
        plan(text)


@pytest.mark.parametrize("text", [row[0] for row in SYNTAX + USING + TYPES])
def test_a_wrong_query_is_not_called_unsupported(plan, text):
    with pytest.raises(QueryError) as caught:
        plan(text)
    assert not isinstance(caught.value, UnsupportedError)


def test_no_message_shows_a_stack_a_class_of_the_parser_or_more_text_than_a_line(plan):
    for text, *_ in NOT_A_QUERY + WINDOWS + SYNTAX + NAMES + USING + TYPES + UNSUPPORTED:
        with pytest.raises(QueryError) as caught:
            plan(text)
        assert "sqlglot" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "\0" not in str(caught.value)
        assert len(str(caught.value)) < 320


def test_the_span_ends_past_the_last_character(plan):
    with pytest.raises(QueryError) as caught:
        plan(HEAD + " WHERE ABS(R.name)\n= 1")
    span = caught.value.span
    assert (span.line, span.column, span.end_line, span.end_column) == (1, 35, 1, 46)
