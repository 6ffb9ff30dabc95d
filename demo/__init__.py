"""`make demo`: two live streams, joined while they arrive, and the result checked."""
