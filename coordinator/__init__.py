"""Plan, dispatch, arrivals, estimate, decode: the life of a run."""
