"""SSBJ and MESHJOIN on a virtual clock, with a disk: the unit's own cache and rules, and the time that steps take."""
