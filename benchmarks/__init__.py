"""Measurements that people can repeat: ``python -m benchmarks.NAME [--small]``."""
