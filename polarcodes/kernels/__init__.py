"""Polar codes from any kernels: mixed radix, any number of workers, recursion stopped early."""
