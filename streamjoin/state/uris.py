"""The URI of a place in an object store, as text: nothing here opens one."""

from __future__ import annotations

import re
from typing import Final

from streamjoin.errors import InputError

_TORN: Final = ("hdfs", "viewfs")
"""Schemes of file systems where a file has its name while it is written, and none takes another's place in one step."""
_STORES: Final = ("s3", "gs", "gcs", "abfs", "abfss")
"""Schemes of the object stores that PyArrow's file systems open."""
BEGINS: Final = "a URI begins with s3://, gs:// or abfss://"


def check_uri(uri: str) -> None:
    """Refuse a URI that names no place in an object store; nothing is asked of the store.

    Raises:
        InputError: there is no such kind of store, the bucket is missing, or what is put there may be seen in part.
    """
    if uri.partition("://")[0] in _TORN:
        raise InputError(
            f"{without_secrets(uri)} may keep a part of what is written as a process dies, and a job could not go on "
            "from there; use an object store, such as s3:// or gs://, or a folder that all machines mount",
            field="run.state",
        )
    scheme, _, rest = uri.partition("://")
    if scheme not in _STORES:
        raise InputError(
            f"{without_secrets(uri)} cannot be opened: there is no store of {scheme}://; {BEGINS}", field="run.state"
        )
    # As it is looked for: keys and slashes in them may stand before the last @.
    if not re.match(r"[^/?#\[\]:]", rest.partition("?")[0].rpartition("@")[2]):
        raise InputError(f"names no bucket; write {scheme}://bucket/job", field="run.state")


def without_secrets(uri: str) -> str:
    """A URI as people may see it: keys and options belong to nobody else."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}" if rest else uri
