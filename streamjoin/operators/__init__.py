"""The join operators: which unit stores a tuple, which units it probes, and what that costs."""
