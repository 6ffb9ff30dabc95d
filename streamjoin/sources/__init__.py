"""Sources that StreamJoin reads itself: files and generators. Spark keeps their offsets."""

from streamjoin.sources.files import FileSource
from streamjoin.sources.generated import GeneratorSource
from streamjoin.sources.source import Read, Source

__all__ = ["FileSource", "GeneratorSource", "Read", "Source"]
