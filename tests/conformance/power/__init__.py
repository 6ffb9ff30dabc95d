"""What a power loss leaves of a job: its writes are recorded, and the worst folders they allow are built from them."""

import pytest

for name in ("job", "record"):
    pytest.register_assert_rewrite(f"{__name__}.{name}")
