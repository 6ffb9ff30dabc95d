"""Settings of the control plane, from the environment; every process reads them once and hands them on."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from streamjoin.errors import InputError
from streamjoin.loopback import is_loopback
from streamjoin.machine import memory_bytes
from streamjoin.settings.mistakes import first_error
from streamjoin.settings.text import read_yaml
from streamjoin.spec.cluster import LOCAL, ClusterFile, check_cluster, parse_host, parse_master
from streamjoin.state.uris import check_uri

SECRETS: Final = (
    "admin_password", "secret_key", "former_secret_key", "cassandra_password", "catalog_url", "redis_url",
    "spark_settings", "state",
)  # fmt: skip
"""Settings that are secrets, or addresses with one in it."""


class Settings(BaseSettings):
    """Everything that can be set; each field is STREAMJOIN_<FIELD> in the environment.

    A secret may be in a file, whose path is then STREAMJOIN_<FIELD>_FILE.

    Args:
        data: the folder of everything that is embedded: catalog, stores, checkpoints, logs.
        host: where the API listens; of an address as clients have it, such as http://127.0.0.1:8000, host and port.
        catalog_url: a SQLAlchemy URL; SQLite in `data` unless set.
        api_processes: that `streamjoin up` lets serve one port; one answers about 350 short questions a second.
        root_path: what a proxy puts in front of our paths, such as /joins; requests may come with it or without.
        redis_url: the broker of Celery and the memory that API processes share.
        auth: off lets everybody do everything, and is refused unless the API listens on loopback.
        secret_key: encrypts connection secrets in the catalog; there is no default, and without it none can be kept.
        former_secret_key: what `streamjoin config rotate-key` opens them with.
        allowed_paths: folders that file streams may read; `auth.folders` has the rules.
        upload_bytes_max: of a file that is sent to the platform.
        uploads_bytes_max, spool_bytes_max: of all files that were sent, and of all rows that were pushed.
        user_uploads_bytes_max, user_spool_bytes_max: of those of one user; half of all unless set.
        job_slots_max, driver_memory_mib_max: what one job may ask for.
        streams_max, relations_max, jobs_max, saved_queries_max, uploads_max: how many of each there may be.
        user_streams_max, user_relations_max, user_jobs_max, user_saved_queries_max, user_uploads_max: of those of one
            user; half of all unless set.
        job_revisions_max: earlier versions that are kept of each job.
        user_job_slots_max, user_job_memory_mib_max: what the running jobs of one user may have together; as many slots
            as one job may ask for unless set, and half of this machine's memory.
        own_paths: such folders too, but for what is hidden in them; `streamjoin up` sets them where nobody logs in.
        trusted_proxies: addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.
        events_days, audit_days: how long it is kept what jobs did by themselves, and what people did or were refused.
        allowed_hosts: hosts that connectors may reach; "*" for any.
        spark_master: the cluster where tasks of jobs run, such as spark://host:7077; this machine unless set.
        spark_executors: as `run.executors` of a join file, such as {min: 2, max: 20, cores: 4, memory: 4g}.
        spark_driver_host: what executors call back; found out unless set.
        spark_settings: as `run.spark` of a join file, for a cluster, such as {spark.pyspark.python: /opt/bin/python}.
        spark_shared: the data folder and those in allowed_paths are mounted at the same path on all of its machines.
        state: the URI of a place in an object store, where jobs keep their states, for workers on several machines
            and clusters; jobs' own folders unless set.
        worker_name: what this machine is called among those with workers; its host name unless set.
        result_store: where results of jobs are kept; `auto` takes Cassandra for equalities and HBase for ranges.
        warm_drivers: so many drivers wait for jobs with the memory and slots that are set here; 0 for none.
        lease_s: so long a driver may work without having renewed its lease.
        stop_grace_s: so long a driver may finish its batch before it is ended.
        api_key_days: the longest time that a new API key holds, and how long it does unless it is said.
        frontend: a build of the dashboard; frontend/build beside the backend unless set.
    """

    model_config = SettingsConfigDict(env_prefix="STREAMJOIN_", extra="ignore")

    data: Path = Path("streamjoin-data")
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=1, le=65_535)
    root_path: str = ""
    api_processes: int = Field(default=1, ge=1, le=64)
    catalog_url: str | None = Field(default=None, repr=False)
    redis_url: str = Field(default="redis://127.0.0.1:6379/0", repr=False)
    auth: Literal["on", "off"] = "on"
    admin_password: SecretStr | None = None
    secret_key: SecretStr | None = None
    former_secret_key: SecretStr | None = None
    allowed_paths: Annotated[tuple[Path, ...], NoDecode] = ()
    own_paths: Annotated[tuple[Path, ...], NoDecode] = ()
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ("127.0.0.1", "localhost")
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = ()
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    state: str | None = Field(default=None, repr=False)
    worker_name: str | None = Field(default=None, pattern=r"^[\w.-]{1,200}$")
    result_store: Literal["sqlite", "cassandra", "hbase", "auto"] = "sqlite"
    cassandra_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    cassandra_port: int = 9042
    cassandra_keyspace: str = "streamjoin"
    cassandra_username: str | None = None
    cassandra_password: SecretStr | None = None
    hbase_host: str | None = None
    hbase_port: int = 9090
    spark_master: str | None = None
    spark_executors: str | None = None
    spark_driver_host: str | None = None
    spark_settings: SecretStr | None = None
    spark_shared: bool = False
    spark_jars: str | None = None
    job_slots: int = Field(default=2, ge=1, le=1024)
    starts_max: int = Field(default_factory=lambda: len(os.sched_getaffinity(0)), ge=1)
    job_slots_max: int = Field(default=64, ge=1, le=1024)
    driver_memory_mib_max: int = Field(default=16 << 10, ge=480)
    driver_memory_mib: int = Field(default=1024, ge=480)
    warm_drivers: int = Field(default=1, ge=0, le=100)
    streams_max: int = Field(default=10_000, ge=1)
    relations_max: int = Field(default=10_000, ge=1)
    jobs_max: int = Field(default=100, ge=1)
    saved_queries_max: int = Field(default=10_000, ge=1)
    uploads_max: int = Field(default=10_000, ge=1)
    user_streams_max: int | None = Field(default=None, ge=1)
    user_relations_max: int | None = Field(default=None, ge=1)
    user_jobs_max: int | None = Field(default=None, ge=1)
    user_saved_queries_max: int | None = Field(default=None, ge=1)
    user_uploads_max: int | None = Field(default=None, ge=1)
    job_revisions_max: int = Field(default=200, ge=1)
    body_bytes_max: int = Field(default=4 << 20, ge=1024)
    upload_bytes_max: int = Field(default=64 << 20, ge=1)
    uploads_bytes_max: int = Field(default=4 << 30, ge=1)
    spool_bytes_max: int = Field(default=16 << 30, ge=1)
    user_uploads_bytes_max: int | None = Field(default=None, ge=1)
    user_spool_bytes_max: int | None = Field(default=None, ge=1)
    user_job_slots_max: int | None = Field(default=None, ge=1)
    user_job_memory_mib_max: int = Field(default_factory=lambda: memory_bytes() >> 21, ge=1)
    rate_limit: str = "600/minute"
    lease_s: float = Field(default=20.0, gt=1)
    reconcile_s: float = Field(default=2.0, gt=0)
    stop_grace_s: float = Field(default=60.0, ge=0)
    events_days: float = Field(default=30.0, gt=0)
    audit_days: float = Field(default=365.0, gt=0)
    session_hours: float = Field(default=12.0, gt=0)
    api_key_days: float = Field(default=365.0, gt=0)
    frontend: Path | None = None

    @model_validator(mode="before")
    @classmethod
    def _split_and_read(cls, values: dict[str, Any]) -> dict[str, Any]:
        if "://" in str(values.get("host", "")):  # as clients have it
            address = urlsplit(str(values["host"]))
            if address.port is not None and str(values.setdefault("port", address.port)) != str(address.port):
                raise ValueError(f"STREAMJOIN_HOST names port {address.port}, and STREAMJOIN_PORT {values['port']}")
            values["host"] = address.hostname or ""
        for name in ("allowed_paths", "own_paths", "allowed_hosts", "allowed_origins", "trusted_proxies",
                     "cassandra_hosts"):  # fmt: skip
            if isinstance(values.get(name), str):
                values[name] = tuple(part.strip() for part in values[name].split(",") if part.strip())
        for name in SECRETS:
            if (file := _file_of(name)) is not None:
                try:
                    values[name] = file.read_text().strip()
                except OSError as cause:
                    raise ValueError(f"STREAMJOIN_{name.upper()}_FILE cannot be read: {cause.strerror}") from None
        return values

    @field_validator("root_path")
    @classmethod
    def _begin_with_slash(cls, path: str) -> str:
        if path.strip("/") and not path.startswith("/"):
            raise ValueError(f"{path[:50]} does not begin with /; write /{path.strip('/')[:50]}")
        return path.rstrip("/")  # the router takes it off only as whole parts of a path

    @field_validator("trusted_proxies")
    @classmethod
    def _are_addresses(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError:
                raise ValueError(f"{proxy[:50]} is no address and no network; write 10.0.0.5 or 10.0.0.0/24") from None
        return proxies

    @field_validator("spark_master")
    @classmethod
    def _is_a_master(cls, master: str | None) -> str | None:
        return parse_master(master) if master else None

    @field_validator("spark_driver_host")
    @classmethod
    def _is_a_host(cls, host: str | None) -> str | None:
        return parse_host(host) if host else None

    @field_validator("spark_executors")
    @classmethod
    def _are_executors(cls, text: str | None) -> str | None:
        return text if text and fields_of("executors", text) else None

    @field_validator("spark_settings")
    @classmethod
    def _are_settings_of_spark(cls, text: SecretStr | None) -> SecretStr | None:
        return text if text and fields_of("spark", text.get_secret_value()) else None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("executors", "driver_host", "settings"):
            if getattr(self, f"spark_{name}") and not self.is_on_cluster:
                raise ValueError(
                    f"STREAMJOIN_SPARK_{name.upper()} is for a cluster; set STREAMJOIN_SPARK_MASTER, or leave it out"
                )
        try:
            check_cluster(ClusterFile.model_validate(cluster_of(self)))
        except InputError as wrong:
            raise ValueError(f"the cluster of jobs is wrong: {wrong}") from None
        if self.is_on_cluster and not self.spark_shared and self.state is None:
            raise ValueError(
                f"on {self.spark_master} executors need the data folder, where state and uploads are; mount it at the "
                "same path on all machines of the cluster and set STREAMJOIN_SPARK_SHARED=true, or keep states in an "
                "object store, which STREAMJOIN_STATE names"
            )
        if self.state is not None:
            self._check_state(self.state)
        if self.auth == "off" and not is_loopback(self.host):
            raise ValueError(f"auth is off and the API would listen on {self.host}; set STREAMJOIN_AUTH=on")
        if self.result_store in ("cassandra", "auto") and not self.cassandra_hosts:
            raise ValueError(f"result_store {self.result_store} needs STREAMJOIN_CASSANDRA_HOSTS")
        if self.result_store in ("hbase", "auto") and self.hbase_host is None:
            raise ValueError(f"result_store {self.result_store} needs STREAMJOIN_HBASE_HOST")
        return self

    def _check_state(self, state: str) -> None:
        if "://" not in state or state.startswith("file:"):
            shown = state.partition("?")[0].rpartition("@")[2]  # a key may stand before it, and options behind it
            raise ValueError(
                f"STREAMJOIN_STATE is {shown}, and a place in an object store is a URI such as s3://bucket/streamjoin; "
                "leave it out to keep states in the data folder"
            )
        try:
            check_uri(state)
        except InputError as wrong:
            raise ValueError(f"STREAMJOIN_STATE: {wrong.message}") from None
        if self.result_store == "sqlite":
            raise ValueError(
                "with STREAMJOIN_STATE a job may go on on another machine, which has not the files of SQLite; set "
                "STREAMJOIN_RESULT_STORE to cassandra, hbase or auto"
            )

    @property
    def is_on_cluster(self) -> bool:
        """Whether tasks of jobs run elsewhere than in their drivers."""
        return self.spark_master not in (None, LOCAL)

    @property
    def reaches_data(self) -> bool:
        """Whether tasks of jobs see the data folder, wherever they run."""
        return self.spark_shared or not self.is_on_cluster

    @property
    def catalog(self) -> str:
        """The catalog's SQLAlchemy URL."""
        return self.catalog_url or f"sqlite:///{self.data.absolute() / 'catalog.db'}"

    def of_one_user(self, setting: str) -> tuple[str, int]:
        """The name of the setting that limits one user, and that limit: half of all unless it is set.

        Args:
            setting: the limit of all, such as `streams_max`.
        """
        own = f"user_{setting}"
        return own, getattr(self, own) or max(getattr(self, setting) // 2, 1)

    def job_folder(self, job_id: str) -> Path:
        """Where a job's checkpoint, embedded results and logs are."""
        return self.data.absolute() / "jobs" / job_id

    def checkpoint_folder(self, job_id: str, incarnation: int) -> Path:
        """Where a job keeps its state, its logs of Spark and rejected rows; another each time it starts anew."""
        return self.job_folder(job_id) / f"checkpoint-{incarnation}"

    def state_place(self, job_id: str, incarnation: int | None = None) -> str | None:
        """Where in the store a job's state is, of all its incarnations or of one; None where it is in its folder."""
        if self.state is None:
            return None
        place, mark, options = self.state.partition("?")
        below = job_id if incarnation is None else f"{job_id}/{incarnation}"
        return f"{place.rstrip('/')}/{below}{mark}{options}"

    @property
    def machine(self) -> str:
        """What this machine is called where it takes jobs."""
        return self.worker_name or socket.gethostname()

    def environment(self) -> dict[str, str]:
        """These settings as environment variables, for a process that is started.

        A secret that came from a file is read from there again: what stands in an environment is easier to come by.
        """
        found = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value is None:
                continue
            if name in SECRETS and (file := _file_of(name)) is not None:
                found[f"STREAMJOIN_{name.upper()}_FILE"] = str(file.absolute())
                continue
            if isinstance(value, SecretStr):
                text = value.get_secret_value()
            elif isinstance(value, tuple):
                text = ",".join(map(str, value))
            else:
                text = str(value.absolute() if isinstance(value, Path) else value)
            found[f"STREAMJOIN_{name.upper()}"] = text
        return found


def _file_of(name: str) -> Path | None:
    """The file that the environment names for a secret."""
    file = os.environ.get(f"STREAMJOIN_{name.upper()}_FILE")
    return Path(file) if file else None


def without_secrets(environment: Mapping[str, str], but: Collection[str] = ()) -> dict[str, str]:
    """Environment variables for a process that needs no secrets but these."""
    names = {f"STREAMJOIN_{name.upper()}{end}" for name in SECRETS if name not in but for end in ("", "_FILE")}
    return {name: value for name, value in environment.items() if name not in names}


def forget_secrets() -> dict[str, str]:
    """Take secrets out of this process's environment, so that what it starts has none; gives what was there."""
    left = without_secrets(os.environ)
    forgotten = {name: value for name, value in os.environ.items() if name not in left}
    for name in forgotten:
        del os.environ[name]
    return forgotten


def fields_of(section: str, text: str) -> dict[str, Any]:
    """What a setting says of a section of `run`, as a join file has it.

    Raises:
        ValueError: it is wrong; the message names the field.
    """
    try:
        found = read_yaml(text)
        if not isinstance(found, dict):
            raise ValueError(f"is not a mapping, as run.{section} of a join file is")
        ClusterFile.model_validate({section: found})
        return found
    except ValidationError as wrong:
        raise ValueError(str(first_error(wrong, ClusterFile))) from None
    except InputError as wrong:
        raise ValueError(str(wrong)) from None


def cluster_of(settings: Settings) -> dict[str, Any]:
    """What these settings say of the section `run` of a job's join file: where its tasks run."""
    if not settings.is_on_cluster:
        return {}
    found = {
        "master": settings.spark_master,
        "shared": settings.spark_shared,
        "driver_host": settings.spark_driver_host,
        "executors": settings.spark_executors and fields_of("executors", settings.spark_executors),
        "spark": settings.spark_settings and fields_of("spark", settings.spark_settings.get_secret_value()),
    }
    return {name: value for name, value in found.items() if value is not None}


def is_given(name: str) -> bool:
    """Whether the environment has a setting, or a file with it."""
    return f"STREAMJOIN_{name.upper()}" in os.environ or _file_of(name) is not None


def read_settings(**overrides: Any) -> Settings:
    """Settings from the environment.

    Raises:
        InputError: one is wrong; the message names it.
    """
    try:
        return Settings(**overrides)
    except ValidationError as wrong:
        error = wrong.errors(include_input=False)[0]
        place = f"STREAMJOIN_{str(error['loc'][0]).upper()}: " if error["loc"] else ""
        raise InputError(f"{place}{error['msg'].removeprefix('Value error, ')}") from None
