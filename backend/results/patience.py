"""A client that reads nothing holds what its answer is made of; it is waited for no longer than so long."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Send


def patient(send: Send, send_s: float) -> Send:
    """Sends each message, or gives up.

    Args:
        send_s: how long a client may read nothing at all while something waits for it.
    Raises:
        TimeoutError: it read nothing for so long.
    """

    async def sends(message: Message) -> None:
        async with asyncio.timeout(send_s):
            await send(message)

    return sends
