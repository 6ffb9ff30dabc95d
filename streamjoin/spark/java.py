"""The Java that Spark runs on, and the archive of classes that lets it start in half the time.

Java reads and checks some twenty thousand classes before a first batch is done. It can keep what it made of them in a
file that is mapped into every later process (class data sharing, JEP 350), so their pages are in memory once however
many jobs run. Java refuses an archive of another version or class path by itself, and then reads the classes as usual:
an archive changes times, never results.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyspark

from streamjoin.errors import InputError
from streamjoin.spark.home import spark_home

LITTLE_OPTIONS = ("-XX:+UseSerialGC",)
# Java's second compiler takes a third of a start's processor time, for code that is run some thousand times and then
# never again. Ten times as many calls and turns of a loop are asked before it compiles; a join at work has them soon.
SECOND_COMPILER_OPTIONS = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


@dataclass(frozen=True)
class Java:
    """A usable Java.

    Args:
        version: what `java -version` says.
    """

    program: str
    version: str

    @cached_property
    def archive(self) -> Path:
        """Where its archive of Spark's classes is, or would be: beside the Python packages that bring them."""
        jars = spark_home() / "jars"
        text = "\n".join([self.version, str(jars), pyspark.__version__])
        name = f"classes-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsa"
        return Path(sys.prefix) / "share" / "streamjoin" / name

    def options(self, record: Path | None = None) -> list[str]:
        """By which Java starts sooner: with the archive, where there is one; or records it into `record` as it ends."""
        quiet = ["-Xlog:disable", "-Xlog:all=error:stderr"]
        if record is not None:
            return [f"-XX:ArchiveClassesAtExit={record}", *quiet]
        archived = [f"-XX:SharedArchiveFile={self.archive}", *quiet] if self.archive.exists() else []
        return [*archived, *SECOND_COMPILER_OPTIONS]


def find_java() -> Java:
    """The Java in JAVA_HOME or on PATH.

    Raises:
        InputError: there is none that Spark can use.
    """
    program = shutil.which("java", path=os.path.join(os.environ.get("JAVA_HOME", ""), "bin")) or shutil.which("java")
    if program is None:
        raise InputError(
            "Spark needs a Java runtime, version 17 or 21, and there is no `java` on PATH; install one or set JAVA_HOME"
        )
    try:
        version = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30).stderr
        major = int(version.split('"')[1].split(".")[0])
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired):
        raise InputError(f"{program} does not tell its version; Spark needs Java 17 or 21") from None
    if major < 17:
        raise InputError(f"Spark needs Java 17 or 21, and {program} is version {major}")
    return Java(program, version)
