"""What a batch reads, as tasks of another machine hear of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.errors import StateError
from streamjoin.spark import offsetlog
from streamjoin.state.generation import Head
from streamjoin.state.root import ObjectRoot


def test_a_task_reads_the_head_once_however_many_batches_it_asks_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = []

    def head(root: ObjectRoot) -> Head:
        read.append(root)
        return Head("g1-a", 1, files={"offsets/offsets/3": "three", "offsets/offsets/4": "four"})

    monkeypatch.setattr(offsetlog, "own_head", head)
    logged = offsetlog.carried_offsets(ObjectRoot("mock://place", tmp_path))
    assert not read, "a job without topics and relations asks for nothing"
    assert [logged(3), logged(4), logged(3)] == ["three", "four", "three"]
    assert len(read) == 1
    with pytest.raises(StateError, match="says what batch 5 reads"):
        logged(5)


WHOLE = {
    "metadata": '{"id":"1"}',
    "offsets/3": 'v1\n{"a":1}\n{"clock_us":3}\n-',
    "offsets/4": 'v1\n{"a":1}\n{"clock_us":4}\n{"t":{"0":5}}',
    "commits/2": 'v1\n{"b":1}',
    "commits/3": 'v1\n{"b":1}',
}


@pytest.mark.parametrize("torn", ["", "v1", "\0\0\0\0", 'v1\n{"a":', "v1\n\0\0\0\0\0\0\0\0\0\0"])
@pytest.mark.parametrize(
    ("names", "left"),
    [
        ((), set(WHOLE)),
        (("commits/3",), {*WHOLE} - {"commits/3"}),
        (("commits/2", "commits/3"), {*WHOLE} - {"commits/2", "commits/3"}),
        (("offsets/4",), {*WHOLE} - {"offsets/4"}),
        (("offsets/3",), set(WHOLE)),
        (("metadata", "offsets/4"), {*WHOLE} - {"offsets/4"}),
    ],
    ids=[
        "none",
        "a commit",
        "commits",
        "the last offsets",
        "offsets of before, which is damage",
        "the query's id, too",
    ],
)
def test_torn_entries_at_the_end_are_removed(torn: str, names: tuple[str, ...], left: set[str], tmp_path: Path) -> None:
    for name, text in WHOLE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(torn if name in names else text)
    offsetlog.drop_torn(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == left


def test_where_nothing_was_planned_a_torn_id_goes_with_all_else(tmp_path: Path) -> None:
    (tmp_path / "offsets" / "offsets").mkdir(parents=True)
    (tmp_path / "offsets" / "metadata").write_text("")
    (tmp_path / "offsets" / "offsets" / "0").write_text("")
    offsetlog.drop_torn(tmp_path / "offsets")
    assert not (tmp_path / "offsets").exists()
    offsetlog.drop_torn(tmp_path / "offsets")
