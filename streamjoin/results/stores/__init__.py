"""Where committed results are kept: one small interface, one module a system."""
