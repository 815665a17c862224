"""Objectives for `polarlambda optimize`: `scripts/new_objective.py FOLDER --example NAME`."""
