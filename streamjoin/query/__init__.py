"""The online query language: text -> syntax tree -> bound plan.

    parse(text)             syntax only; needs no streams
    bind(parsed, streams)   names and types; gives the plan a join runs by
    plan_query(text, ...)   both

    text -> words (tokens) -> plain SELECT (online, within, refused) -> tree (parse) -> expressions (translate) -> plan

User text reaches sqlglot's parser and nothing else: what runs is built from an allow-list of syntax nodes
(`translate`) and an allow-list of functions (`streamjoin.plan.functions.table`).
"""

from streamjoin.query.bind import bind, plan_query
from streamjoin.query.condition import bind_condition
from streamjoin.query.parse import ParsedQuery, parse
from streamjoin.query.predicates import RegisteredPredicate
from streamjoin.query.source import UnsupportedQueryError

__all__ = [
    "ParsedQuery",
    "RegisteredPredicate",
    "UnsupportedQueryError",
    "bind",
    "bind_condition",
    "parse",
    "plan_query",
]
