"""Encoding as a function: ranges of leaves and of tiles, on Lambda."""
