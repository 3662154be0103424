"""Calls: what is called, how arguments are bound, recursive functions, rules."""
