"""The dispatch function: invokes a part of a run's workers."""
