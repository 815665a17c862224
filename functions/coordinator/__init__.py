"""The coordinator as a function: the run code of `coordinator`, on Lambda."""
