"""An operator, a source and a store that follow the recipes of ARCHITECTURE.md, and tests that they then run."""
