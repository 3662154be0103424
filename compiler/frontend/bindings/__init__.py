"""Names of arrays that are bound anew: the forms in which loops and branches keep them."""
