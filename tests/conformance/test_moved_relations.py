"""A job whose folder was moved goes on with the relations that it has read, also if they came along."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.failpoints import FailpointError
from streamjoin.relations.versions import Versions
from streamjoin.sources.relation import Relation
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import Bound, bind
from tests import duck
from tests.failing import failing_at
from tests.relocating import WAYS, relocate

from .alone import run_alone
from .test_going_on import arrive

TEXT = """\
query: 'SELECT ONLINE r.id AS r, rates.rate FROM r LEFT JOIN rates ON r.k = rates.k'
streams: {{r: {{source: parquet, path: r, time: ts, delay: 2s}}}}
relations: {{rates: {{source: parquet, path: {path}}}}}
results: {{parquet: out}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2}}
"""


def rates(folder: Path, factor: int) -> None:
    (folder / "rates").mkdir(exist_ok=True)
    for number in range(2):
        keys = list(range(20 * number, 20 * number + 20))
        pq.write_table(
            pa.table({"k": keys, "rate": [factor * key for key in keys]}), folder / "rates" / f"{number}.parquet"
        )


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("path", ["rates", "rates/*.parquet"])
def test_a_job_goes_on_with_its_relation_where_its_folder_was_moved(path: str, how: str, tmp_path: Path) -> None:
    """A batch that was begun has the version that it had, and files that came along have not changed."""
    job, other = tmp_path / "job", tmp_path / "far" / "job"
    job.mkdir()
    other.parent.mkdir()

    def bound(folder: Path) -> Bound:
        return bind(parse(TEXT.format(path=path), base=folder))

    rates(job, factor=1)
    for number in range(3):
        arrive(job, number)
    with failing_at("batch.before_commit", 2), pytest.raises(FailpointError):
        run_alone(bound(job))
    relocate(how, job, other)
    driver = run_alone(bound(other))
    assert Versions(driver.job.tables, "rates").numbers() == [1], "it is not read again"
    rates(other, factor=7)
    arrive(other, 3)
    driver = run_alone(bound(other))
    assert Versions(driver.job.tables, "rates").newest() == 2
    wanted = duck.rows(
        f"SELECT id, if(id < 120, rate / 7, rate) FROM '{other}/r/*.parquet' r "
        f"LEFT JOIN '{other}/rates/*.parquet' rates ON r.k = rates.k"
    )
    assert Counter(duck.rows(f"SELECT r, rate FROM '{other}/out/*.parquet'")) == Counter(wanted)


def test_a_relation_that_an_earlier_version_read_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates(tmp_path, factor=1)
    arrive(tmp_path, 0)
    job = parse(TEXT.format(path="rates"), base=tmp_path)
    with monkeypatch.context() as before:
        before.setattr(Relation, "origin", lambda self: self._hash(str))
        run_alone(bind(job))
    driver = run_alone(bind(job))
    assert Versions(driver.job.tables, "rates").numbers() == [1]
