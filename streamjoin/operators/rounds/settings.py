"""The knob that operators have alike which run a query in rounds."""

from __future__ import annotations

from typing import Annotated

from streamjoin.settings.orders import OrdersSetting
from streamjoin.settings.setting import setting

Orders = Annotated[
    OrdersSetting,
    setting(
        "by stream, the order in which its rows meet the others, such as {a: [b, c]}",
        unset="first what an equality leads to, then what any condition leads to; of these the shorter reach first",
    ),
]
