"""What connectors may reach: folders, hosts and client settings that the platform's owner allowed.

A registered stream or relation is read by the platform, with the platform's rights, so its entry must not be a way to
the files of this machine or into the network behind it. Checked when it is registered and again when it is read,
because links and names may point elsewhere by then.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from backend.auth.folders import SETTING, Folders
from backend.problems import Place, Problem
from backend.settings import Settings
from backend.streams import spool
from backend.streams.pushed import is_push
from backend.uploads.names import is_upload, path_of
from streamjoin.errors import InputError
from streamjoin.sources.database import Database
from streamjoin.sources.filelog import DEPTH_MAX, PARTITION, is_pattern, list_files
from streamjoin.sources.kafka_kind import schema_file
from streamjoin.sources.patterns import Tally, tally_of

ANY = "*"
SERVERS_MAX = 50

_METADATA = tuple(
    ip_network(network)
    for network in ("169.254.0.0/16", "100.100.100.200/32", "192.0.0.192/32", "fe80::/10", "fd00:ec2::254/128",
                    "fd20:ce::254/128")
)  # fmt: skip
"""Link-local addresses, and where clouds tell a machine its own credentials."""
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
_NAT64 = ip_network("64:ff9b::/96")

_FREE = frozenset({
    "security.protocol", "sasl.username", "sasl.password", "client.id", "client.dns.lookup",
    "ssl.endpoint.identification.algorithm", "ssl.key.password", "ssl.keystore.password", "ssl.truststore.password",
    "ssl.keystore.type", "ssl.truststore.type", "ssl.keystore.key", "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates", "ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", "request.timeout.ms",
    "session.timeout.ms", "socket.timeout.ms", "fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes",
})  # fmt: skip
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_FILES = frozenset({
    "ssl.truststore.location", "ssl.keystore.location", "ssl.ca.location", "ssl.certificate.location",
    "ssl.key.location",
})  # fmt: skip
_DATABASE_SETTINGS = frozenset({"sslmode", "connect_timeout", "application_name"})
"""Of a connection to PostgreSQL; others read files of this machine, or lead elsewhere."""
_DATABASE_VALUE = re.compile(r"[A-Za-z0-9._ -]*")
_QUOTED = r'"(?:[^"\\\x00-\x1f]|\\["\\])*"'
_JAAS = re.compile(
    r"org\.apache\.kafka\.common\.security\.(?:plain\.PlainLoginModule|scram\.ScramLoginModule) required"
    rf" username={_QUOTED} password={_QUOTED};"
)


_GIVEN_APART = "leave it out here, and give it in `secrets` as `password`, which are encrypted"


def check_place(settings: Settings, spec: Mapping[str, Any]) -> None:
    """Refuse a stream or relation that is somewhere its platform may not look.

    Args:
        spec: its entry of a join file.
    Raises:
        Problem: names the place, and what the platform's owner has to set.
    Cost: one listing of a folder of links; a look-up of each host where any host is allowed.
    """
    if (path := spec.get("path")) is not None:
        if is_upload(path):
            _check_upload(settings, path, "/spec/path")
        elif is_push(spec):
            _check_pushed(settings, path, "/spec/path")
        else:
            check_path(settings, path, "/spec/path")
    if spec.get("source") == "sql":
        _check_database(settings, spec)
    if spec.get("source") == "cassandra":
        _check_cluster(settings, spec)
    if (avro := schema_file(spec.get("avro_schema"))) is not None:
        check_path(settings, avro, "/spec/avro_schema")
    if (servers := spec.get("servers")) is not None:
        _check_servers(settings, servers)
    if (client := spec.get("client")) is not None:
        check_client(settings, client, "/spec/client")


def _check_database(settings: Settings, spec: Mapping[str, Any]) -> None:
    try:
        database = Database(str(spec.get("url")))
    except InputError as wrong:
        _refuse("/spec/url", wrong.message, "bad_place")
    if database.secrets:
        _refuse(
            "/spec/url",
            f"has a password, and a spec is shown to everybody; {_GIVEN_APART}",
            "bad_place",
        )
    if (server := database.server) is None:
        check_path(settings, database.file, "/spec/url")
        return
    if others := sorted(set(database.settings) - _DATABASE_SETTINGS):
        _refuse("/spec/url", f"may not set {others[0][:50]} here; it may set {', '.join(sorted(_DATABASE_SETTINGS))}")
    for name, value in server.settings.items():
        if not _DATABASE_VALUE.fullmatch(value):
            _refuse("/spec/url", f"may set {name} to letters, digits, spaces and . _ - alone; leave out the rest")
    check_host(settings, database.host, "/spec/url")


def _check_cluster(settings: Settings, spec: Mapping[str, Any]) -> None:
    if spec.get("password") is not None:
        _refuse("/spec/password", f"is shown to everybody here; {_GIVEN_APART}", "bad_place")
    for host in spec.get("hosts") or ():
        check_host(settings, str(host), "/spec/hosts")


def check_path(settings: Settings, path: object, pointer: str) -> Path:
    """Refuse a file or folder that may not be read, and one with something in it that may not.

    Returns:
        Where it really is.
    Raises:
        Problem: it is not allowed; it names the folders that are.
    Cost: one listing of a folder, of its partitions, or of what a pattern matches; of `patterns.ENTRIES_MAX` entries at
        most where a request asks.
    """
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        _refuse(pointer, "a path on this platform is absolute, such as /data/orders", "bad_place")
    folders = Folders(settings)
    try:
        real = Path(path).resolve()
        shown, reason = path, folders.why_not(real)
        if reason is None and real.is_dir():
            shown, reason = _closed_inside(real, folders, tally_of(real))
        elif reason is None and is_pattern(real):
            shown, reason = _first_closed(list_files(real), folders)
        elif reason is None and real.exists() and not real.is_file():
            _refuse(pointer, f"{path[:200]} is neither a file nor a folder", "bad_place")
    except InputError as wrong:
        _refuse(pointer, wrong.message, "bad_place")
    except (OSError, RuntimeError) as cause:
        why = getattr(cause, "strerror", None) or "its links lead in a circle"
        _refuse(pointer, f"{path[:200]} cannot be looked at: {why}", "bad_place")
    if reason is not None:
        _refuse(pointer, f"{shown[:200]} {reason}")
    return real


def check_host(settings: Settings, host: str, pointer: str) -> None:
    """Refuse a host that connectors may not reach.

    Where every host is allowed, those that only this machine reaches on its link are still not, unless named: they
    hand out the machine's own credentials.

    Raises:
        Problem: it is not allowed.
    """
    name = host.lower().rstrip(".")
    allowed = {entry.lower().strip("[]").rstrip(".") for entry in settings.allowed_hosts}
    if name in allowed:
        return
    if ANY not in allowed:
        _refuse(
            pointer,
            f"{host[:200]} is not one of the hosts that may be reached; the platform's owner names them in "
            "STREAMJOIN_ALLOWED_HOSTS",
        )
    if name in _METADATA_NAMES or any(map(_is_metadata, _addresses(name))):
        _refuse(
            pointer,
            f"{host[:200]} is a link-local or metadata address, which must be named in STREAMJOIN_ALLOWED_HOSTS itself",
        )


def check_client(settings: Settings, client: object, pointer: str = "/secrets") -> None:
    """Refuse settings of a Kafka client that run code, read files or call other hosts.

    Args:
        client: what is given to both Kafka clients, Java's and C's.
    Raises:
        Problem: names the setting.
    """
    if not isinstance(client, Mapping):
        _refuse(pointer, "settings of the Kafka client are a mapping of names to texts")
    for name, value in client.items():
        place = f"{pointer}/{str(name)[:100]}"
        if not isinstance(value, str | int | float):
            _refuse(place, "is a text, a number or a truth value")
        if name in _FILES:
            check_path(settings, value, place)
        elif name in ("sasl.mechanism", "sasl.mechanisms"):
            if value not in _MECHANISMS:
                _refuse(place, f"{str(value)[:50]} is not supported here; take {', '.join(_MECHANISMS)}")
        elif name == "sasl.jaas.config":
            if not _JAAS.fullmatch(str(value).strip()):
                _refuse(
                    place,
                    "is the PlainLoginModule or the ScramLoginModule of Kafka, required, with a username and a "
                    "password in double quotes, and nothing else",
                )
        elif name not in _FREE:
            _refuse(place, f"{str(name)[:100]} may not be set here; {', '.join(sorted(_FREE)[:4])} ... may")


def _check_upload(settings: Settings, path: str, pointer: str) -> None:
    try:
        place = path_of(settings, path)
    except InputError as wrong:
        _refuse(pointer, wrong.message, "bad_place")
    try:
        files = list_files(place)
    except InputError:
        missing = f"there is no {path[:200]}; send the file to the platform first: streamjoin uploads add FILE"
        _refuse(pointer, missing, "bad_place")
    for file in files:
        if file.is_symlink():
            _refuse(pointer, f"{file.name[:200]} is a link among the uploaded files; remove it from {file.parent}")


def _check_pushed(settings: Settings, path: str, pointer: str) -> None:
    """Pushed rows are read by their own stream alone, whose entry has a mark that no client can set."""
    place, shown, reason = Path(path), "", None
    try:
        own = spool.folder_of(settings.data, place.name)
        is_own = place.resolve() == own.parent.resolve() / own.name  # the folder itself must not be a link
        if is_own and own.is_dir():
            shown, reason = _closed_inside(own, Folders(settings), None)
    except (ValueError, OSError, RuntimeError):
        is_own = False
    if not is_own:
        check_path(settings, path, pointer)  # as any other path
    if reason is not None:
        _refuse(pointer, f"{shown[:200]} {reason}")


def _check_servers(settings: Settings, servers: object) -> None:
    pointer = "/spec/servers"
    parts = servers.split(",") if isinstance(servers, str) else []
    if not 0 < len(parts) <= SERVERS_MAX:
        _refuse(pointer, f"are 1 to {SERVERS_MAX} of host:port, with commas between them")
    for part in parts:
        try:
            # Clients read "PLAINTEXT://host:port", too, and a user or a path could hide which host is meant.
            if not re.fullmatch(r"[A-Za-z0-9._\-:\[\]]+", part.strip()):
                raise ValueError
            split = urlsplit(f"//{part.strip()}")
            host, port = split.hostname, split.port
        except ValueError:
            host = port = None
        if not host or not port:
            _refuse(pointer, f"{part.strip()[:200]!r} is not host:port", "bad_place")
        check_host(settings, host, pointer)


def _closed_inside(folder: Path, folders: Folders, tally: Tally | None, depth: int = 0) -> tuple[str, str | None]:
    """What would be read with a folder and may not be, with the reason; links are followed.

    That is what lies in it, and in those of its folders that are partitions; other folders may be closed.
    """
    if depth > DEPTH_MAX:
        return str(
            folder
        ), f"lies in more than {DEPTH_MAX} folders of partitions; name it in {SETTING}, or end the circle"
    with os.scandir(folder) as entries:
        for entry in entries:
            if tally is not None:
                tally.count()
            if entry.name[0] in "._":  # not read
                continue
            is_partition = PARTITION in entry.name and entry.is_dir()
            if is_partition or entry.is_symlink():
                reason = folders.why_not(Path(entry.path).resolve())
                if reason is not None:
                    return entry.path, reason
            if is_partition:
                shown, reason = _closed_inside(Path(entry.path), folders, tally, depth + 1)
                if reason is not None:
                    return shown, reason
    return "", None


def _first_closed(files: list[Path], folders: Folders) -> tuple[str, str | None]:
    """The first file that may not be read, with the reason."""
    for file in files:
        if (reason := folders.why_not(file.resolve())) is not None:
            return str(file), reason
    return "", None


def _addresses(name: str) -> list[IPv4Address | IPv6Address]:
    try:
        # Also reads 0xa9fea9fe and 2852039166, as clients would.
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []  # a name that leads nowhere reaches nothing; it is looked up again when the stream is read
    return [ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


def _is_metadata(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_metadata(inner)
    return any(address in network for network in _METADATA)


def _refuse(pointer: str, detail: str, subcode: str = "not_allowed") -> NoReturn:
    raise Problem(f"invalid.{subcode}", f"{pointer}: {detail}", errors=[Place(pointer=pointer, detail=detail)])
