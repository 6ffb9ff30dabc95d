"""Spark's folder without PySpark's zip."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from streamjoin.spark.home import spark_home


@pytest.fixture(autouse=True)
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr("streamjoin.spark.home.sys.prefix", str(tmp_path))
    return tmp_path


def test_it_has_programs_and_jars_and_no_zip_and_is_made_once() -> None:
    home = spark_home()
    assert spark_home() == home
    assert (home / "bin" / "spark-submit").is_file() and list((home / "jars").glob("spark-core*.jar"))
    assert not (home / "python").exists()


def test_links_that_lead_nowhere_are_made_anew(prefix: Path) -> None:
    home = spark_home()
    (home / "jars").unlink()
    (home / "jars").symlink_to(prefix / "moved")
    assert list((spark_home() / "jars").glob("spark-core*.jar"))


def test_the_folder_that_is_asked_for_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert spark_home() == Path("/opt/spark")


def test_where_nothing_can_be_written_it_is_pysparks_own(prefix: Path) -> None:
    (prefix / "share").write_text("no folder")
    assert spark_home() == Path(pyspark.__file__).parent
