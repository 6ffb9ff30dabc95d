"""Trees of joins as people write them."""

from __future__ import annotations

import pytest

from streamjoin.settings.trees import parse_tree


@pytest.mark.parametrize(
    "written",
    [
        [["a", "b"], "c"],
        "[[a, b], c]",
        "((a, b), c)",
        " ( (a,b) ,c ) ",
        '[["a","b"],"c"]',
    ],
)
def test_it_is_read_as_a_list_and_as_text(written: object) -> None:
    assert parse_tree(written) == (("a", "b"), "c")


def test_none_is_none() -> None:
    assert parse_tree(None) is None


@pytest.mark.parametrize(
    "written",
    [
        "a",
        "",
        "[a]",
        "[a, b, c]",
        "[a, b",
        "a, b]",
        "[a, b]]",
        "[a, b] c",
        "[a, [b, [c, [d, [e, [f, [g, [h, [i, [j, k]]]]]]]]]]",
        "[" * 500,
        [],
        ["a"],
        ["a", ["b", 3]],
        {"a": "b"},
        7,
        ["a", ""],
    ],
)
def test_what_is_no_tree_is_refused_with_an_example(written: object) -> None:
    with pytest.raises(ValueError, match=r"such as \[\[a, b\], c\]"):
        parse_tree(written)
