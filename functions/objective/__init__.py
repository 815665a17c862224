"""The objective's worker: a user's function at the points of one search direction."""
