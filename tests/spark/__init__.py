"""StreamJoin on a real local Spark: exact, through crashes, live and from Kafka."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.periods")
