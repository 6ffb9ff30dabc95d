"""S3Proxy on the loopback interface, started as in a container."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from pyarrow import fs

from .maven import jars
from .process import ServerProcess, free_ports

HERE = Path(__file__).parent
START_S_MAX = 120.0
SCRIPT = HERE.parents[1] / "docker" / "objectstore" / "objectstore.sh"
"""What starts the store in a container."""
KEY, SECRET = "streamjoin", "localsecret"
BUCKET = "states"
ENVIRONMENT = {
    # The trailers of newer clients are not understood.
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
    "AWS_EC2_METADATA_DISABLED": "true",
}
# Java that lives for a minute is not worth being optimised.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"


class S3:
    """A server that runs inside the `with` block, with one bucket.

    Args:
        secret: its password.
        kept: a folder of what it holds that stays; a temporary one unless given.
    Raises:
        ServerUnavailable: on entering, when java or the jars are missing and cannot be downloaded.
        ServerFailed: on entering, when it does not start.
    """

    def __init__(self, secret: str = SECRET, kept: Path | None = None) -> None:
        self.secret = secret
        self.kept = kept

    def __enter__(self) -> Self:
        found = jars(HERE / "s3")
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-s3-")
        home = Path(self.folder.name)
        (password := home / "password").write_text(self.secret)
        [self.port] = free_ports(1)
        self.variables = {
            "STORE_JARS": str(found), "STORE_PASSWORD_FILE": str(password), "STORE_LISTEN": "127.0.0.1",
            "STORE_DATA": str(self.kept or home / "data"), "STORE_PORT": str(self.port), "STORE_MEMORY": "256m",
            "JAVA_TOOL_OPTIONS": JAVA_OPTIONS,
        }  # fmt: skip
        environment = [f"{name}={value}" for name, value in self.variables.items()]
        command = ["env", *environment, "bash", str(SCRIPT), "serve"]
        self.process = ServerProcess("S3Proxy", command, home / "s3proxy.log")
        try:
            self.process.wait_for_output("Started", START_S_MAX)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.folder.cleanup()

    def uri(self, path: str, port: int | None = None, key: str = KEY, secret: str | None = None) -> str:
        """A place in the bucket, as `run.state` has it.

        Args:
            port: of a proxy in front.
            secret: another one than the server's.
        """
        options = f"endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"
        return f"s3://{key}:{secret or self.secret}@{path}?{options}"

    def filesystem(self) -> fs.S3FileSystem:
        """A client of its own, without a proxy."""
        return fs.S3FileSystem(
            access_key=KEY, secret_key=self.secret, endpoint_override=f"127.0.0.1:{self.port}", scheme="http",
            region="us-east-1",
        )  # fmt: skip
