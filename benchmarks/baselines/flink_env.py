"""Flink's own environment: PyFlink in a virtual environment and the jars that read Parquet, made on first use.

Apart from the project's environment because PyFlink pins old versions of what the project uses.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "flink-requirements.txt"
JARS_POM = HERE / "flink-jars.xml"
LOOKUP = HERE / "ParquetLookup.java"
ENVIRONMENT = HERE.parent / ".flink-venv"
PYTHON = ENVIRONMENT / "bin" / "python"
JARS = ENVIRONMENT / "jars"
READY = ENVIRONMENT / "ready"  # Holds the requirements it was made from.
PYTHON_VERSION_MAX = (3, 12)


def is_ready() -> bool:
    """True if `ensure` has nothing to do."""
    return READY.exists() and READY.read_text() == wanted()


def ensure() -> None:
    """Make the environment, or make it anew when the pinned versions have changed. Needs the network and Maven.

    Raises:
        subprocess.CalledProcessError: an installer failed; its output went to stderr.
        RuntimeError: no Python that Flink supports was found.
    """
    if is_ready():
        return
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    python = supported_python()
    if uv := shutil.which("uv"):
        execute([uv, "venv", "--quiet", "--python", python, str(ENVIRONMENT)])
        execute([uv, "pip", "install", "--quiet", "--python", str(PYTHON), "-r", str(REQUIREMENTS)])
    else:
        execute([python, "-m", "venv", str(ENVIRONMENT)])
        execute([str(PYTHON), "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)])
    # `includeScope` leaves out test jars; Flink brings its own logging, and two bindings would clash.
    execute(
        [
            "mvn", "--batch-mode", "--quiet", "--file", str(JARS_POM), "dependency:copy-dependencies",
            f"-DoutputDirectory={JARS}", "-DincludeScope=runtime", "-DexcludeGroupIds=org.slf4j",
        ]
    )  # fmt: skip
    (ENVIRONMENT / ".gitignore").write_text("*\n")
    READY.write_text(wanted())


def flink_home() -> Path:
    """The folder with Flink's bin/, conf/ and lib/."""
    return next(ENVIRONMENT.glob("lib/python3.*/site-packages/pyflink"))


def process_environment(classes: Path | None = None) -> dict[str, str]:
    """Environment variables for Flink's own processes and for Python programs that submit to it.

    Args:
        classes: a folder of further classes, see `compile_lookup`.
    """
    # The one variable that both Flink's scripts and PyFlink's gateway append to their class path.
    path = f"{JARS}/*" if classes is None else f"{JARS}/*:{classes}"
    return {**os.environ, "HADOOP_CLASSPATH": path, "FLINK_HOME": str(flink_home())}


def compile_lookup(classes: Path) -> None:
    """Compile the connector that lets Flink's lookup cache read Parquet into a folder. Needs a JDK.

    Raises:
        RuntimeError: there is no compiler, or it failed; the message has its first lines.
    """
    if (compiler := shutil.which("javac")) is None:
        raise RuntimeError("the connector of Flink's lookup join has to be compiled, and there is no javac on PATH")
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "org.apache.flink.table.factories.Factory").write_text("streamjoin.benchmarks.ParquetLookup\n")
    command = [compiler, "-cp", f"{flink_home() / 'lib'}/*:{JARS}/*", "-d", str(classes), str(LOOKUP)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the connector of Flink's lookup join does not compile:\n{done.stderr[:1500]}")


def wanted() -> str:
    return REQUIREMENTS.read_text() + JARS_POM.read_text()


def supported_python() -> str:
    if sys.version_info[:2] <= PYTHON_VERSION_MAX:
        return sys.executable
    for minor in (12, 11, 10):
        if python := shutil.which(f"python3.{minor}"):
            return python
    raise RuntimeError("Flink 2.3 needs Python 3.12 or older; install one and put it on PATH")


def execute(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    ensure()
