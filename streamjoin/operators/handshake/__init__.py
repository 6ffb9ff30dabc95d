"""The handshake chain (ESJ): R and S move through a line of workers in opposite directions, and meet on their way."""

from streamjoin.operators.handshake.chain import Handshake

__all__ = ["Handshake"]
