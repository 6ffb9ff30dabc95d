"""Whether a host is this machine, for all that is open to it alone."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a listener on `host`, a name or an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
