"""Passes over the array IR, before and after the derivative. One file, one pass."""
