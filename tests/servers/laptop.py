"""A Spark cluster of two workers and an object store, on this machine alone: `make cluster`, until Ctrl-C.

Says which lines of a join file use them. The cluster and what the store holds are gone in the end.
"""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack

from streamjoin.errors import InputError
from streamjoin.spark.java import find_java

from .maven import ServerUnavailable
from .process import ServerFailed
from .s3 import BUCKET, ENVIRONMENT, S3
from .spark import SparkCluster

WORKERS = 2
NOT_HERE = 3
"""The exit status where Java, Maven or the jars are missing."""


def lines(cluster: SparkCluster, s3: S3) -> str:
    """What a join file and a shell need."""
    settings = ", ".join(f'{name}: "{value}"' for name, value in cluster.settings.items())
    exports = "\n".join(f"export {name}={value}" for name, value in ENVIRONMENT.items())
    return f"""\
In a join file, under run:
  master: {cluster.master}
  executors: {{min: {WORKERS}, max: {WORKERS}, cores: 1, memory: 512m}}
  spark: {{{settings}}}
  shared: true
  state: "{s3.uri(f"{BUCKET}/joins")}"

In the shell that runs it, as this store does not understand the checksums of newer clients:
{exports}

A Spark master with {WORKERS} workers of one core, and an object store, on this machine alone; Ctrl-C ends them."""


def main() -> int:
    """The command line."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell in the background has it ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with ExitStack() as stack:
            find_java()
            s3 = stack.enter_context(S3())
            cluster = stack.enter_context(SparkCluster(WORKERS, environment=ENVIRONMENT))
            print(lines(cluster, s3), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except (InputError, ServerUnavailable) as reason:
        print(f"cluster: {reason}", file=sys.stderr)
        return NOT_HERE
    except ServerFailed as reason:
        print(f"cluster: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
