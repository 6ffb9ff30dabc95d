"""The papers' evaluation curves beside ours, from unit costs measured here and the simulated protocols."""
