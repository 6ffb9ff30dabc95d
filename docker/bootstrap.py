"""What has to be done once on a new platform, as its admin.

    bootstrap.py key NAME FILE      make a viewer's API key, and write it to a file unless one there holds
    bootstrap.py demo NAME          start a demo
    bootstrap.py cassandra HOST ROLE    make a role in Cassandra, and lock the one that it comes with

The platform's address is STREAMJOIN_HOST, the admin's password is in the file STREAMJOIN_ADMIN_PASSWORD_FILE, and
the role's in STREAMJOIN_CASSANDRA_PASSWORD_FILE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

PATIENCE_S = 30.0


@contextmanager
def logged_in() -> Iterator[httpx2.Client]:
    """A client with the admin's session."""
    host = os.environ["STREAMJOIN_HOST"].rstrip("/")
    password = Path(os.environ["STREAMJOIN_ADMIN_PASSWORD_FILE"]).read_text().strip()
    with httpx2.Client(base_url=host, headers={"Origin": host}, timeout=PATIENCE_S) as client:
        post(client, "/api/v1/sessions", {"name": "admin", "password": password})
        yield client
        client.delete("/api/v1/sessions/current")


def post(client: httpx2.Client, path: str, body: Any = None) -> Any:
    """The JSON that the platform answers with; ends the program where it refuses."""
    reply = client.post(path, json=body)
    if reply.status_code >= 400:
        sys.exit(f"{path}: {reply.json().get('detail', reply.status_code)}")
    return reply.json()


def opens(key: str) -> bool:
    """Whether a key holds still; keys end, and so do those that a login made when the password is changed."""
    host = os.environ["STREAMJOIN_HOST"].rstrip("/")
    reply = httpx2.get(f"{host}/api/v1/users/me", headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S)
    return reply.status_code != 401


def take_over_cassandra(host: str, role: str) -> None:
    """Make a role with our password, and lock `cassandra`, whose password everybody knows. Again changes nothing.

    Raises:
        NoHostAvailable: Cassandra does not answer, or refuses both roles; it makes its own some time after it starts.
    """
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
    from cassandra.policies import WhiteListRoundRobinPolicy

    name, _, port = host.partition(":")
    password = Path(os.environ["STREAMJOIN_CASSANDRA_PASSWORD_FILE"]).read_text().strip()

    @contextmanager
    def session_of(user: str, secret: str) -> Iterator[Any]:
        profile = ExecutionProfile(WhiteListRoundRobinPolicy([name]), request_timeout=PATIENCE_S)
        cluster = Cluster([name], int(port or 9042), auth_provider=PlainTextAuthProvider(user, secret),
                          execution_profiles={EXEC_PROFILE_DEFAULT: profile}, protocol_version=5)  # fmt: skip
        try:
            yield cluster.connect()
        finally:
            cluster.shutdown()

    made = f"ROLE {role} WITH PASSWORD = '{password}' AND LOGIN = true AND SUPERUSER = true"
    with suppress(NoHostAvailable), session_of(role, password) as session:
        session.execute("ALTER ROLE cassandra WITH SUPERUSER = false AND LOGIN = false")
        return
    with session_of("cassandra", "cassandra") as session:
        session.execute(f"CREATE {made.replace('ROLE', 'ROLE IF NOT EXISTS', 1)}")
    with session_of(role, password) as session:
        session.execute("ALTER ROLE cassandra WITH SUPERUSER = false AND LOGIN = false")


def main() -> None:
    """Do what the arguments say."""
    match sys.argv[1:]:
        case ["key", name, file]:
            path = Path(file)
            if path.exists() and opens(path.read_text().strip()):
                return
            with logged_in() as client:
                made = post(client, "/api/v1/api-keys", {"name": name, "role": "viewer", "ends_with_login": False})
            new = path.with_suffix(".new")
            new.write_text(made["key"])
            new.chmod(0o444)  # the volume is the other container's alone, and it runs as somebody else
            new.rename(path)
        case ["demo", name]:
            with logged_in() as client:
                print(f"{post(client, f'/api/v1/demos/{name}')['name']} is starting")
        case ["cassandra", host, role]:
            take_over_cassandra(host, role)
            print(f"Cassandra has the role {role}, and nobody logs in as cassandra any more")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
