"""What every result store must do."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.contract")
