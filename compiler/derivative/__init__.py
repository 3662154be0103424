"""Reverse mode: what to keep (plan), the forward sweep that keeps it, the reverse sweep that reads it."""
