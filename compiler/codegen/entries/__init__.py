"""Entries: what calls a kernel from Python: arguments are read and checked, results and shadows are made."""
