"""Names are given once over streams and relations, on both databases, however many ask at once."""

from __future__ import annotations

from threading import Barrier, Thread

from sqlalchemy import func, select

from backend.catalog.database import Catalog
from backend.catalog.ids import new_id
from backend.catalog.migrate import migrate
from backend.catalog.models import Relation, Stream
from backend.lookup import check_free
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
