"""What moves along an edge of the plan: blocks of tuples, and punctuations that say how far event time has come."""
