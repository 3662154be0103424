"""What the stages of `pipeline` do: each is a few lines, the work is in the packages.

Frontend and code generator are imported where their stage runs: `mutad-opt` needs neither.
"""
