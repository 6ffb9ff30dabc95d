"""ESJ's chain of workers with the message-passing two-phase forwarding protocol (ESJ, "Join engine")."""
