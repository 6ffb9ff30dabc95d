"""Names are given once over streams and relations, on both databases, however many ask at once."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest
from sqlalchemy import func, select

from backend.catalog.database import Catalog
from backend.catalog.ids import new_id
from backend.catalog.migrate import migrate
from backend.catalog.models import Relation, Stream
from backend.lookup import by_id_or_name, check_free
from backend.problems import Problem

AT_ONCE = 8


def test_of_many_transactions_one_gets_a_name(url: str) -> None:
    migrate(url)
    catalog = Catalog(url)
    together = Barrier(AT_ONCE)
    refused: list[str] = []

    def take(number: int) -> None:
        together.wait()
        try:
            with catalog.begin() as session:
                check_free(session, "wanted" if number % 4 < 2 else "Wanted")
                table = (Stream, Relation)[number % 2]
                session.add(table(id=new_id("x"), name="wanted", spec={}, version=1))
        except Problem as problem:
            refused.append(problem.code)

    threads = [Thread(target=take, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with catalog.read() as session:
        taken = [session.scalar(select(func.count()).select_from(table)) for table in (Stream, Relation)]
    catalog.close()
    assert sum(filter(None, taken)) == 1
    assert refused == ["conflict"] * (AT_ONCE - 1)


@pytest.mark.parametrize("id_or_name", ["str_1", "wanted"])
def test_of_many_transactions_each_sees_what_the_one_before_wrote(url: str, id_or_name: str) -> None:
    migrate(url)
    catalog = Catalog(url)
    with catalog.begin() as session:
        session.add(Stream(id="str_1", name="wanted", spec={}, version=1))
    together = Barrier(AT_ONCE)

    def change() -> None:
        together.wait()
        with catalog.begin() as session:
            by_id_or_name(session, Stream, id_or_name, "stream", held=True).version += 1

    threads = [Thread(target=change) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with catalog.read() as session:
        assert session.get_one(Stream, "str_1").version == 1 + AT_ONCE
    catalog.close()
