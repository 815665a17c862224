"""The decode function: a range of the windows or parts of one product."""
