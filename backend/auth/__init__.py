"""Who asks, what they may do, and what connectors may reach."""
