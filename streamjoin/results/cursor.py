"""Where an answer ended, as its client holds it: opaque, and good for the same question to the same results only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, fields

from streamjoin.errors import InputError
from streamjoin.results.block import BlockRef
from streamjoin.results.question import Question
from streamjoin.results.snapshot import SnapshotId


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an answer ended: rows `skip` of the block's answering rows were given.

    Args:
        needed: the oldest snapshot of which blocks are left to read.
    """

    upto: SnapshotId
    needed: SnapshotId
    id: SnapshotId
    batch: int
    unit: int
    number: int
    skip: int

    def is_at(self, id: SnapshotId, ref: BlockRef) -> bool:
        """Whether a block is the one where it ended."""
        return id == self.id and (ref.key.batch, ref.key.unit, ref.key.number) == (self.batch, self.unit, self.number)

    def text(self, question: Question, job: str) -> str:
        """For the client: opaque, and of this question to these results only.

        Args:
            job: the name of the results, which is another one after the job has begun anew.
        """
        ids = [str(self.upto), str(self.needed), str(self.id)]
        value = [*ids, self.batch, self.unit, self.number, self.skip, _digest(question, job)]
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()

    @staticmethod
    def read(question: Question, job: str) -> Cursor | None:
        """The question's cursor.

        Args:
            job: see `text`.
        Raises:
            InputError: it is none, or not of this question, or not of these results.
        """
        if question.cursor is None:
            return None
        try:
            upto, needed, id, batch, unit, number, skip, digest = json.loads(base64.urlsafe_b64decode(question.cursor))
            parse = SnapshotId.parse
            found = Cursor(parse(upto), parse(needed), parse(id), batch, unit, number, skip)
            if any(type(value) is not int or not 0 <= value < 2**62 for value in (batch, unit, number, skip)):
                raise ValueError
        except (ValueError, TypeError, binascii.Error, InputError, AttributeError, RecursionError):
            raise InputError("this is not a cursor; copy it from an answer unchanged") from None
        if digest != _digest(question, job):
            raise InputError(
                "this cursor belongs to another query, or to results from before the job began anew; leave it out to "
                "start from the beginning"
            )
        return found


_ASKED = tuple(field.name for field in fields(Question) if field.name not in ("cursor", "limit", "bound"))


def _digest(question: Question, job: str) -> str:
    asked = {name: str(getattr(question, name)) for name in _ASKED} | {"job": job}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
