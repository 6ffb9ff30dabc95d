"""The Celery app of the workers: `python -m worker.app` is one, and `make_app` gives it to whoever sends tasks."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from celery import Celery
from kombu.entity import Queue

from backend.catalog.database import Catalog
from backend.catalog.machines import folder_id
from backend.logs import set_up_logs
from backend.private import keep_private
from backend.settings import Settings, read_settings
from streamjoin.errors import InputError
from worker import leases, sweep
from worker.machines import Machines
from worker.queues import QUEUE, queue_of
from worker.tasks import add_tasks

VISIBLE_S: Final = 30
"""So long after a worker took a task and vanished, another one gets it. Tasks take seconds."""
TASK_S_MAX: Final = 20
CONCURRENCY: Final = 2


def broker_url(redis_url: str) -> str:
    """The same Redis as Celery writes it, which has words of its own for Unix sockets."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    (database,) = parse_qs(parts.query).get("db", ["0"])
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"


def make_app(settings: Settings) -> Celery:
    """An app with the tasks of `worker.tasks`; nothing connects before it is used."""
    app = Celery("streamjoin", broker=broker_url(settings.redis_url), set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_time_limit=TASK_S_MAX,
        task_default_queue=QUEUE,
        task_queues=[Queue(name) for name in (QUEUE, queue_of(settings.machine))],  # type: ignore[no-untyped-call]
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=2,
        broker_transport_options={
            "visibility_timeout": VISIBLE_S,
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            "socket_connect_timeout": 2,
            "socket_timeout": 10,
        },
    )
    add_tasks(app, settings)
    return app


def send(app: Celery, task: str, arguments: list[Any], queue: str, expires_s: float) -> None:
    """Send a task, once: whoever sends will look again, and send again.

    Raises:
        kombu.exceptions.OperationalError: the broker does not answer.
    """
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
        app.send_task(task, arguments, queue=queue, expires=expires_s, connection=connection, retry=False)


def main() -> None:
    """Work until SIGTERM or Ctrl-C."""
    keep_private()
    try:
        settings = read_settings()
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
    set_up_logs("worker")
    name = f"streamjoin-{os.getpid()}@{settings.machine}"
    folder = folder_id(settings.data)
    adopt = partial(leases.adopt, folder=folder, has_state=lambda job, n: settings.checkpoint_folder(job, n).is_dir())
    machine = Machines(Catalog(settings.catalog), settings.machine, folder, adopt)
    machine.start()
    sweep.start(settings, machine)
    try:
        make_app(settings).worker_main(
            ["worker", "--pool", "prefork", "--concurrency", str(CONCURRENCY), "--hostname", name, "--loglevel", "INFO",
             "--without-gossip", "--without-mingle", "--without-heartbeat"]
        )  # fmt: skip
    finally:
        machine.leave()


if __name__ == "__main__":
    main()
