"""What readers of results see while the drivers that write them are killed."""

import pytest

for name in ("play", "watch", "inside"):
    pytest.register_assert_rewrite(f"{__name__}.{name}")
