"""How many bytes a function takes, by its arguments: of its work area, and of what its steps keep."""
