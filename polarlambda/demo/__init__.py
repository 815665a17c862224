"""The demo: real photographs, 64 workers with stragglers, the estimate, the exact answer."""
