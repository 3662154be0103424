"""The compiler: Python source to gradient to LLVM."""
