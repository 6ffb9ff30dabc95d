"""What a traceback, a log line or a debugger shows of settings, stores and places: no password."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from backend.settings import SECRETS, Settings
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.state.root import ObjectRoot

TELLS = "hunter2"


def test_attack_no_secret_of_the_settings_is_shown(tmp_path: Path) -> None:
    given = {
        "admin_password": TELLS, "secret_key": TELLS, "former_secret_key": TELLS, "cassandra_password": TELLS,
        "catalog_url": f"postgresql+psycopg://joins:{TELLS}@127.0.0.1/joins",
        "redis_url": f"redis://:{TELLS}@127.0.0.1:6379/0", "state": f"s3://key:{TELLS}@bucket/states",
    }  # fmt: skip
    settings = Settings(data=tmp_path, result_store="cassandra", cassandra_hosts=("127.0.0.1",), **given)
    of_spark = Settings(
        data=tmp_path, spark_master="spark://127.0.0.1:7077", spark_shared=True,
        spark_settings=f"{{spark.authenticate.secret: {TELLS}}}",
    )  # fmt: skip
    assert {*given, "spark_settings"} == set(SECRETS)
    for shown in (repr(settings), str(settings), repr(of_spark)):
        assert TELLS not in shown and str(tmp_path) in shown


def test_attack_a_place_that_is_refused_is_named_without_its_key(tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(data=tmp_path, state=f"s3:/key:{TELLS}@bucket/states?secret={TELLS}")
    (error,) = refused.value.errors()
    assert "STREAMJOIN_STATE is bucket/states, and" in error["msg"] and TELLS not in error["msg"]


def test_attack_no_password_of_a_store_or_a_place_is_shown() -> None:
    store = StoreSpec("cassandra", (("hosts", ("127.0.0.1",)), ("password", TELLS)))
    place = ObjectRoot(f"s3://key:{TELLS}@bucket/states")
    for one in (store, place):
        assert TELLS not in f"{one!r} {one}"
    assert "bucket/states" in place.place and TELLS not in place.place
