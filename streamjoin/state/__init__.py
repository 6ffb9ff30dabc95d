"""State that outlives a process: versioned manifests of immutable segments."""
