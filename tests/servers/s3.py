"""S3Proxy on the loopback interface, which serves a folder as S3; the folder goes when it is left."""

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
KEY, SECRET = "local", "localsecret"
BUCKET = "states"
ENVIRONMENT = {
    # The trailers of newer clients are not understood.
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
    "AWS_EC2_METADATA_DISABLED": "true",
}
PROPERTIES = """\
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={key}
s3proxy.credential={secret}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={folder}
jclouds.identity={key}
jclouds.credential={secret}
"""


class S3:
    """A server that runs inside the `with` block, with one bucket.

    Raises:
        ServerUnavailable: on entering, when java or the jars are missing and cannot be downloaded.
        ServerFailed: on entering, when it does not start.
    """

    def __enter__(self) -> Self:
        found = jars(HERE / "s3")
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-s3-")
        (data := Path(self.folder.name) / "data").mkdir()
        (data / BUCKET).mkdir()
        [self.port] = free_ports(1)
        properties = Path(self.folder.name) / "s3proxy.properties"
        properties.write_text(PROPERTIES.format(port=self.port, folder=data, key=KEY, secret=SECRET))
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{found}/*"]
        command += ["org.gaul.s3proxy.Main", "--properties", str(properties)]
        self.process = ServerProcess("S3Proxy", command, Path(self.folder.name) / "s3proxy.log")
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

    def uri(self, path: str, port: int | None = None, key: str = KEY, secret: str = SECRET) -> str:
        """A place in the bucket, as `run.state` has it.

        Args:
            port: of a proxy in front.
        """
        options = f"endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"
        return f"s3://{key}:{secret}@{path}?{options}"

    def filesystem(self) -> fs.S3FileSystem:
        """A client of its own, without a proxy."""
        return fs.S3FileSystem(
            access_key=KEY, secret_key=SECRET, endpoint_override=f"127.0.0.1:{self.port}", scheme="http",
            region="us-east-1",
        )  # fmt: skip
