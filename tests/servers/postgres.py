"""A PostgreSQL server on the loopback interface, from the programs that are installed.

Data and log live in a temporary folder that goes when the server is left; `kill` and `restart` keep them, as a crash
does. The server refuses to run as root, so root hands it to the user `postgres`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg

from .maven import ServerUnavailable
from .process import ServerFailed, ServerProcess, free_ports

START_S_MAX = 300.0
INIT_S_MAX = 60.0
USER = "postgres"

# A crash of the machine is not what is tested, so nothing waits for the disk.
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": "50",
}


class PostgresServer:
    """A server that runs inside the `with` block, where `url` is what SQLAlchemy opens.

    Raises:
        ServerUnavailable: on entering, when there is no PostgreSQL on this machine.
        ServerFailed: on entering, when it does not start.
    """

    def __enter__(self) -> Self:
        self.programs = find_programs()
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-postgres-")
        try:
            self.data = Path(self.folder.name) / "data"
            self.data.mkdir(mode=0o700)
            if os.getuid() == 0:
                Path(self.folder.name).chmod(0o755)
                owner = pwd.getpwnam(USER)
                os.chown(self.data, owner.pw_uid, owner.pw_gid)
            self.initialise()
            (self.port,) = free_ports(1)
            self.start()
        except BaseException:
            self.folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.folder.cleanup()

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """An empty database beside the first one; returns its URL."""
        run = subprocess.run(
            [str(self.programs / "createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, name],
            capture_output=True, text=True, timeout=INIT_S_MAX, check=False,
        )  # fmt: skip
        if run.returncode:
            raise ServerFailed(f"PostgreSQL made no database {name}: {run.stderr}")
        return self.url_of(name)

    def guard(self, role: str, password: str, *, query: str) -> str:
        """A table that a role must give its password for, both of this name; returns their URL without it."""
        rules = self.data / "pg_hba.conf"
        rules.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as connection:
            for command in (
                f"CREATE ROLE {role} LOGIN PASSWORD '{password}'", f"CREATE TABLE {role} AS {query}",
                f"GRANT SELECT ON {role} TO {role}", "SELECT pg_reload_conf()",
            ):  # fmt: skip
                connection.execute(command.encode())
        return f"postgresql://{role}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Begin to run, on the data that is there, and wait until it takes connections."""
        options = [part for name, value in OPTIONS.items() for part in ("-c", f"{name}={value}")]
        program = str(self.programs / "postgres")
        command = [*as_user(), program, "-D", str(self.data), "-p", str(self.port), *options]
        self.process = ServerProcess("PostgreSQL", command, Path(self.folder.name) / "postgres.log")
        try:
            self.process.wait_for_output("database system is ready to accept connections", START_S_MAX)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End in order: clients are cut off, and what was committed is kept."""
        if self.process.is_running():
            os.kill(self.process.pid, signal.SIGINT)
            self.process.process.wait(START_S_MAX)
        self.kill()

    def kill(self) -> None:
        """End at once, as a crash does. The data stays for `restart`."""
        # Its own processes lead sessions of their own, so they are not in the group. A new server refuses to start
        # while one of them still holds the shared memory.
        helpers: list[psutil.Process] = []
        if self.process.is_running():
            helpers = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for helper in helpers:
            with suppress(psutil.NoSuchProcess):
                helper.kill()
        psutil.wait_procs(helpers, START_S_MAX)

    def restart(self) -> None:
        """Run again on the same data and port, after killing it if it still runs. Returns once it is ready."""
        self.kill()
        self.start()

    def initialise(self) -> None:
        run = subprocess.run(
            [*as_user(), str(self.programs / "initdb"), "-D", str(self.data), "-A", "trust", "-U", USER,
             "--no-sync", "-E", "UTF8", "--no-locale"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=INIT_S_MAX, cwd=self.folder.name, check=False,
        )  # fmt: skip
        if run.returncode:
            raise ServerFailed(f"PostgreSQL's data could not be initialised:\n{run.stdout}")


def find_programs() -> Path:
    """The folder with `initdb` and `postgres`: the one on PATH, else the newest that Debian's packages installed.

    Raises:
        ServerUnavailable: there is none, or none that this user can run.
    """
    how = "install PostgreSQL, such as Debian's package postgresql"
    if os.getuid() == 0:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            raise ServerUnavailable(f"PostgreSQL does not run as root, and there is no user {USER}", how) from None
    on_path = shutil.which("initdb")
    if on_path is not None and shutil.which("postgres"):
        return Path(on_path).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda file: int(file.parts[-3]))
    if not installed:
        raise ServerUnavailable("PostgreSQL is not installed", how)
    return installed[-1].parent


def as_user() -> list[str]:
    """What a command begins with to run as somebody whom PostgreSQL accepts; it stays the same process."""
    return ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups"] if os.getuid() == 0 else []
