"""Where an answer ended, as its client holds it: opaque, and good for the same question only."""

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
    """Where an answer ended: rows `skip` of the block's answering rows were given."""

    upto: SnapshotId
    id: SnapshotId
    batch: int
    unit: int
    number: int
    skip: int

    def is_at(self, id: SnapshotId, ref: BlockRef) -> bool:
        """Whether a block is the one where it ended."""
        return id == self.id and (ref.key.batch, ref.key.unit, ref.key.number) == (self.batch, self.unit, self.number)

    def text(self, question: Question) -> str:
        """For the client: opaque, and of this question only."""
        value = [str(self.upto), str(self.id), self.batch, self.unit, self.number, self.skip, _digest(question)]
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()

    @staticmethod
    def read(question: Question) -> Cursor | None:
        """The question's cursor."""
        if question.cursor is None:
            return None
        try:
            upto, id, batch, unit, number, skip, digest = json.loads(base64.urlsafe_b64decode(question.cursor))
            found = Cursor(SnapshotId.parse(upto), SnapshotId.parse(id), batch, unit, number, skip)
            if any(type(value) is not int or not 0 <= value < 2**62 for value in (batch, unit, number, skip)):
                raise ValueError
        except (ValueError, TypeError, binascii.Error, InputError, AttributeError, RecursionError):
            raise InputError("this is not a cursor; copy it from an answer unchanged") from None
        if digest != _digest(question):
            raise InputError("this cursor belongs to another query; leave it out to start from the beginning")
        return found


_ASKED = tuple(field.name for field in fields(Question) if field.name not in ("cursor", "limit"))


def _digest(question: Question) -> str:
    asked = {name: str(getattr(question, name)) for name in _ASKED}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
