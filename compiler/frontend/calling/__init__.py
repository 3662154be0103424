"""Calls: what is called, how arguments are bound, functions that call themselves, rules."""
