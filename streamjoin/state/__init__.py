"""State that outlives a process: versioned manifests of immutable segments."""

from streamjoin.state.store import StateStore

__all__ = ["StateStore"]
