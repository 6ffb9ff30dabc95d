"""The handshake chain (ESJ): R and S move through a line of workers in opposite directions, and meet on their way."""

from streamjoin.operators.handshake.chain import AUTO_BLOCK, Handshake, build

__all__ = ["AUTO_BLOCK", "Handshake", "build"]
