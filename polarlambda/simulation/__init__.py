"""Simulations of what cannot be tried here: thousands of workers, the coordinator's code being the
one that runs on AWS."""
