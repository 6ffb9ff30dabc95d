"""Commands that say what a join file would do, and run nothing: validate, explain, preview."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from streamjoin.cli.joinfile import Set, load_join

if TYPE_CHECKING:
    from streamjoin.explain.bundle import OfBundle
    from streamjoin.explain.plans import Explanation
    from streamjoin.explain.preview import Preview

Output = Literal["text", "json"]


def validate(file: Path, *, set: Set = None) -> None:
    """Check a join file, its streams and its query, without running anything.

    Parameters
    ----------
    file
        The join file.
    """
    from streamjoin.explain.bundle import summary
    from streamjoin.explain.order import ordered
    from streamjoin.explain.relations import relation_summary
    from streamjoin.operators import registry
    from streamjoin.spark.identity import check_continues
    from streamjoin.spec.inputs import open_relation, relations_ended
    from streamjoin.spec.owners import check_owners
    from streamjoin.spec.prepare import bind
    from streamjoin.spec.startable import check_can_be_made

    join = load_join(file, set)
    bound = ordered(bind(join))
    check_can_be_made(bound)
    if not registry.is_sparks(bound.operator):
        check_continues(bound.job())
    check_owners(bound, is_brought=False)
    right = summary(bound)
    ended = relations_ended(join)
    relations = [relation_summary(open_relation(join, name)) for name in join.relations if name not in ended]
    print("\n".join([f"{file} is right: {right}", *relations]))


def schema() -> None:
    """Print the JSON Schema of join files, for editors that complete and check YAML."""
    from streamjoin.spec.schema import schema_text

    print(schema_text())


def explain(file: Path, *, set: Set = None, output: Output = "text") -> None:
    """Show how a join would be run, and what every operator would cost.

    Parameters
    ----------
    file
        The join file.
    output
        Text for people, JSON for programs.
    """
    from streamjoin.explain.bundle import explain as explain_bound
    from streamjoin.spec.prepare import bind
    from streamjoin.spec.reach import is_usual, places, places_text

    join = load_join(file, set)
    explained = explain_bound(bind(join))
    if is_usual(join):
        _show(explained, output)
    elif output == "json":
        lie = [asdict(place) for place in places(join)]
        print(json.dumps({**explained.to_json(), "master": join.run.master, "places": lie}, indent=1))
    else:
        print(f"{explained}\n\n{places_text(join)}")


def preview(file: Path, *, set: Set = None, output: Output = "text") -> None:
    """Show up to 20 result rows, from samples of the streams. Nothing is started or written.

    Parameters
    ----------
    file
        The join file.
    output
        Text for people, JSON for programs.
    """
    from streamjoin.explain.preview import preview as preview_bound
    from streamjoin.spec.prepare import bind

    _show(preview_bound(bind(load_join(file, set))), output)


def _show(found: Explanation | OfBundle | Preview, output: Output) -> None:
    print(json.dumps(found.to_json(), indent=1) if output == "json" else found)
