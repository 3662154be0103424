"""`itertools`, `filter` and the like, in Python: generators that compiled code runs in their place.

They are compiled along as the program's own generators are (`generator_values`). What is iterated is indexed
where it has places (arrays, lists, tuples, ranges) and run over once where it has none.
"""

# pyright: basic, reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any


def has_places(items: Any) -> Any:
    """Asked while compiling: whether the items can be indexed."""


def count_of(items: Any) -> Any:
    """How many items there are, of what has places."""


def item_of(items: Any, k: Any) -> Any:
    """The item at a place."""


def may_change(items: Any) -> Any:
    """Whether the items may be others later: not those of a tuple or range. Asked while compiling."""


def pool(items: Any) -> Any:
    """The items as they are now, indexed."""
    return list(items) if may_change(items) else items


# What `for` runs over


def iterated(iterator: Any) -> Any:
    """An object with `__next__`."""
    while True:
        try:
            item = iterator.__next__()
        except StopIteration:
            return
        yield item


def items_of(items: Any) -> Any:
    """`iter(items)`."""
    yield from items


def numbered(items: Any, start: Any) -> Any:
    k = start
    for item in items:
        yield k, item
        k += 1


def zipped(items: Any, before: Any, after: Any) -> Any:
    """`zip(*before, items, *after)` of one that has no places among those that have."""
    for first in before:
        if count_of(first) == 0:
            return
    for k, item in enumerate(items):
        for later in after:
            if k >= count_of(later):
                return
        yield (
            *tuple(item_of(p, k) for p in before),
            item,
            *tuple(item_of(p, k) for p in after),
        )
        for other in before:
            if k + 1 >= count_of(other):
                return


def rows_of(items: Any) -> Any:
    """`zip(items)`."""
    for item in items:
        yield (item,)


def side_by_side(items: Any, others: Any) -> Any:
    """`zip(items, *others)`, of an iterator and of one over the rows of the others."""
    for item in items:
        for row in others:
            yield (item, *row)
            break
        else:
            return


def backwards(items: Any) -> Any:
    """`reversed(items)`, of what has places."""
    for k in range(count_of(items) - 1, -1, -1):
        yield item_of(items, k)


def mapped(function: Any, items: Any) -> Any:
    for item in items:
        yield function(item)


def filtered(function: Any, items: Any) -> Any:
    if function is None:
        for item in items:
            if item:
                yield item
    else:
        for item in items:
            if function(item):
                yield item


# itertools


def chain(*parts: Any) -> Any:
    for part in parts:
        yield from part


def one_behind_another(items: Any, others: Any) -> Any:
    """`chain(items, *others)`."""
    yield from items
    yield from others


def chain_of(parts: Any) -> Any:
    for part in parts:
        yield from part


def product(*parts: Any, repeat: Any = 1) -> Any:
    yield from combined((), tuple(pool(p) for p in parts) * repeat)


def combined(chosen: Any, rest: Any) -> Any:
    if len(rest) == 0:
        yield chosen
    else:
        for item in rest[0]:
            yield from combined((*chosen, item), rest[1:])


def accumulate(items: Any, func: Any = None, *, initial: Any = None) -> Any:
    found = False
    total = 0
    if initial is not None:
        total = initial
        found = True
        yield total
    for item in items:
        if not found:
            total = item
            found = True
        elif func is None:
            total = total + item
        else:
            total = func(total, item)
        yield total


def first_items(items: Any, stop: Any) -> Any:
    if stop < 0:
        raise ValueError(
            "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
        )
    if has_places(items):
        for k in range(min(stop, count_of(items))):
            yield item_of(items, k)
    elif stop > 0:
        for k, item in enumerate(items, 1):
            yield item
            if k == stop:
                return


def islice(items: Any, start: Any, stop: Any, step: Any = None) -> Any:
    first = 0 if start is None else start
    by = 1 if step is None else step
    if first < 0 or (stop is not None and stop < 0):
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if by < 1:
        raise ValueError("Step for islice() must be a positive integer or None.")
    if has_places(items):
        last = count_of(items) if stop is None else min(stop, count_of(items))
        for k in range(first, last, by):
            yield item_of(items, k)
    elif stop is None or stop > 0:
        for k, item in enumerate(items):
            if k >= first and (k - first) % by == 0:
                yield item
            if stop is not None and k + 1 == stop:
                return


def zip_longest(*parts: Any, fillvalue: Any = None) -> Any:
    pools = tuple(pool(p) for p in parts)
    longest = 0
    for part in pools:
        longest = max(longest, count_of(part))
    for k in range(longest):
        yield tuple(item_of(p, k) if k < count_of(p) else fillvalue for p in pools)


def count(start: Any = 0, step: Any = 1) -> Any:
    n = start
    while True:
        yield n
        n += step


def repeat(item: Any) -> Any:
    while True:
        yield item


def cycle(items: Any) -> Any:
    if may_change(items):
        kept = []
        for item in items:
            yield item
            kept.append(item)
        while len(kept) > 0:
            for item in kept:
                yield item
    else:
        while count_of(items) > 0:
            for k in range(count_of(items)):
                yield item_of(items, k)


def combinations(items: Any, r: Any) -> Any:
    if r < 0:
        raise ValueError("r must be non-negative")
    yield from chosen_from((), pool(items), 0, r, 1)


def combinations_with_replacement(items: Any, r: Any) -> Any:
    if r < 0:
        raise ValueError("r must be non-negative")
    yield from chosen_from((), pool(items), 0, r, 0)


def chosen_from(chosen: Any, items: Any, first: Any, left: Any, step: Any) -> Any:
    if left == 0:
        yield chosen
    else:
        for k in range(first, count_of(items)):
            item = item_of(items, k)
            yield from chosen_from((*chosen, item), items, k + step, left - 1, step)


def permutations(items: Any, r: Any = None) -> Any:
    if r is not None and r < 0:
        raise ValueError("r must be non-negative")
    kept = pool(items)
    yield from arranged((), (), kept, count_of(kept) if r is None else r)


def arranged(chosen: Any, places: Any, items: Any, left: Any) -> Any:
    if left == 0:
        yield chosen
    else:
        for k in range(count_of(items)):
            if k not in places:
                yield from arranged((*chosen, item_of(items, k)), (*places, k), items, left - 1)


def pairwise(items: Any) -> Any:
    if has_places(items):
        if count_of(items) > 0:
            last = item_of(items, 0)
            for k in range(1, count_of(items)):
                item = item_of(items, k)
                yield last, item
                last = item
    else:
        found = False
        last = 0
        for item in items:
            if found:
                yield last, item
            last = item
            found = True


def takewhile(predicate: Any, items: Any) -> Any:
    for item in items:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate: Any, items: Any) -> Any:
    dropping = True
    for item in items:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def starmap(function: Any, items: Any) -> Any:
    for arguments in items:
        yield function(*arguments)


def compress(data: Any, selectors: Any) -> Any:
    for item, selected in zip(data, selectors, strict=False):
        if selected:
            yield item


def filterfalse(predicate: Any, items: Any) -> Any:
    if predicate is None:
        for item in items:
            if not item:
                yield item
    else:
        for item in items:
            if not predicate(item):
                yield item
