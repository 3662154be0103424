"""Values made of other values: objects with fields, lists; how they are made, joined, handed over."""
