"""Plan a run, dispatch it, collect arrivals, estimate, decode: the life of one coded product."""
