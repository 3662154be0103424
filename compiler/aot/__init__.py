"""The ahead-of-time compiler `mutadc`: functions of a module to a library that C links, and its header."""
