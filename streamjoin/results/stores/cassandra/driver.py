"""The driver for Cassandra, which is an extra, and what its errors say."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamjoin.results.stores.store import StoreError

try:
    from cassandra import (
        AuthenticationFailed,
        ConsistencyLevel,
        DriverException,
        InvalidRequest,
        OperationTimedOut,
        ProtocolVersion,
        RequestValidationException,
        Unauthorized,
        Unavailable,
        UnresolvableContactPoints,
        protocol,
    )
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
    from cassandra.connection import ConnectionBusy, ConnectionException
    from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, RetryPolicy, TokenAwarePolicy
    from cassandra.pool import NoConnectionsAvailable
    from cassandra.query import tuple_factory
except ImportError:
    raise StoreError("the driver for Cassandra is not installed; pip install 'streamjoin[cassandra]'") from None

__all__ = [
    "BROKEN",
    "EXEC_PROFILE_DEFAULT",
    "FAILURES",
    "AuthenticationFailed",
    "Cluster",
    "ConnectionBusy",
    "ConnectionException",
    "ConsistencyLevel",
    "DCAwareRoundRobinPolicy",
    "DriverException",
    "ExecutionProfile",
    "FallthroughRetryPolicy",
    "InvalidRequest",
    "NoConnectionsAvailable",
    "NoHostAvailable",
    "OperationTimedOut",
    "PlainTextAuthProvider",
    "ProtocolVersion",
    "RequestValidationException",
    "RetryPolicy",
    "TokenAwarePolicy",
    "Unauthorized",
    "Unavailable",
    "UnresolvableContactPoints",
    "is_busy",
    "protocol",
    "reason",
    "tuple_factory",
]

FAILURES = (DriverException, NoHostAvailable, ConnectionException, ConnectionBusy, NoConnectionsAvailable,
             protocol.ErrorMessage)  # fmt: skip
BROKEN = (OperationTimedOut, NoHostAvailable, ConnectionException, ConnectionBusy, NoConnectionsAvailable)
"""After these the connection is made anew."""


def is_busy(cause: NoHostAvailable) -> bool:
    """Whether the driver refused to queue more; nothing was sent."""
    errors = cause.errors.values() if isinstance(cause.errors, Mapping) else ()
    return any(isinstance(each, (ConnectionBusy, NoConnectionsAvailable)) for each in errors)


def reason(cause: Exception) -> str:
    """In one line: what the server said, or what the driver noticed."""
    text = " ".join(str(cause).split())
    said = re.search(r'message="(.*)"', text)
    return (said[1] if said else text)[:200].rstrip(".") or type(cause).__name__
