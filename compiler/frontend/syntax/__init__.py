"""Rewrites of the syntax tree, and what is asked of it before anything is emitted."""
