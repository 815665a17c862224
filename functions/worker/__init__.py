"""The worker: one coded block times x."""
