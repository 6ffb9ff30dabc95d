"""The operators' message protocols, run by actors over simulated channels under a seeded scheduler."""
