"""What is there while compiled code runs. Most of it is imported here, with what is known of its classes."""

from importlib import import_module

from .import_cache import known_dataclasses

with known_dataclasses():
    import_module(".differentiable_function", __name__)
