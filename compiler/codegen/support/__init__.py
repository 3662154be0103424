"""What kernels call in their own module: scratch memory, tapes, results, the poll. LLVM text.

All state is in the context that the entry hands in (288 bytes, see `context`), so kernels
are re-entrant. Memory comes from `malloc` in chunks; `mutad_end`, which every kernel that allocates
runs on every way out, gives all of it back but the memory of returned arrays. Where the context has
a pool, a few large blocks wait in it for the next call, whose pages are then there already. The
smallest that is large enough is taken; where one too many is given back, the one that has waited longest
is freed.

- *Scratch* is a stack: `mutad_alloc` bumps a cursor; a loop iteration that allocates takes a
  `mutad_mark` and goes back to it. An emptied chunk is kept for the next iteration; where one iteration
  emptied several, one that holds all of them is made next. Only small requests get room to spare.
- A *tape* is a stack of segments in chunks of its own (`{chunk, cursor, end, spare}`); segments are
  multiples of 8 bytes, and the first of a chunk begins at a multiple of 64, or as many bytes behind one as
  the kernel says (`line_starts`).
- *Reserved* ranges are address space for arrays that grow, one for each place of the code, which get
  pages where they are touched. Their records are among those of the results (`reserved`).
- *Results* are single `malloc` blocks with a record `{next, block}` each: what was not returned
  (an exception, the other branch) is freed.

What runs seldom is `optnone`: optimizing it would cost more than it ever gains.
"""
