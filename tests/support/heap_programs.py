"""Programs with objects told apart at run time: values and gradients are tested."""

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Node:
    def __init__(self, x, m=1.0):
        self.x = x
        self.m = m
        self.left = None
        self.right = None

    def weighted(self, k):
        s = self.x * k * self.m
        if self.left is not None:
            s += self.left.weighted(k * 0.5)
        if self.right is not None:
            s += self.right.weighted(k * 0.25)
        return s


def stack_as_a_list_of_links(xs):
    head = None
    for x in xs:
        n = Node(x)
        n.left = head
        head = n
    s, k = 0.0, 1.0
    while head is not None:
        s += k * head.x**2
        k *= 0.5
        head = head.left
    return s


def queue_with_two_ends(xs):
    head = tail = None
    n = 0
    for x in xs:
        node = Node(x)
        if tail is None:
            head = node
        else:
            tail.right = node
        tail = node
        n += 1
        if n % 3 == 0:
            head.right.m = head.x
            head = head.right
    s = 0.0
    while head:
        s += head.m * head.x
        head = head.right
    return s + n


def reversed_in_place(xs):
    head = None
    for x in xs:
        n = Node(x)
        n.left = head
        head = n
    before = None
    while head is not None:
        head.left, before, head = before, head, head.left
    s, k = 0.0, 1
    while before is not None:
        s += before.x * before.x * k
        k += 1
        before = before.left
    return s


def one_or_the_other_is_changed(xs):
    a, b = Node(xs[0], 1.0), Node(xs[1], 2.0)
    c = a if xs[0] > xs[1] else b
    c.m *= xs[2]
    return a.m * a.x + b.m * b.x


def best_so_far_is_changed(xs):
    best, nodes = None, []
    for x in xs:
        n = Node(x, x * x)
        nodes.append(n)
        if best is None or n.m > best.m:
            best = n
    best.m *= 3.0
    best.x += 1
    nodes[1].m += nodes[0].x
    return sum(n.m * n.x * (i + 1) for i, n in enumerate(nodes))


def search_tree_by_loops(xs):
    root = Node(xs[0])
    for x in xs[1:]:
        p = root
        while True:
            if x < p.x:
                if p.left is None:
                    p.left = Node(x, 2.0)
                    break
                p = p.left
            else:
                if p.right is None:
                    p.right = Node(x, 3.0)
                    break
                p = p.right
    s, d, stack = 0.0, 1.0, [root]
    while stack:
        n = stack.pop()
        s += n.m * n.x * d
        d *= 0.7
        for child in (n.left, n.right):
            if child is not None:
                stack.append(child)
    return s


def inserted(node, x, m):
    if node is None:
        return Node(x, m)
    if x < node.x:
        node.left = inserted(node.left, x, m)
    else:
        node.right = inserted(node.right, x, m)
    return node


def scaled(node, k):
    if node is not None:
        node.x *= k
        scaled(node.left, k * k)
        scaled(node.right, k)


def search_tree_by_recursion(xs):
    root = None
    for x in xs:
        root = inserted(root, x, x + 1)
    scaled(root, 1.0 + xs[1])
    return root.weighted(1.0)


def balanced(xs, lo, hi):
    if lo >= hi:
        return None
    mid = (lo + hi) // 2
    n = Node(xs[mid], 1.0 * mid)
    n.left, n.right = balanced(xs, lo, mid), balanced(xs, mid + 1, hi)
    return n


def tree_of_halves(xs):
    root = balanced(xs, 0, len(xs))
    node, s = root, 0.0
    while node is not None:
        s += node.x * node.m
        node = node.left if node.x > 0.35 else node.right
    return s + root.weighted(xs[0])


class Cell:
    """A node of a quadtree."""

    def __init__(self, cx, cy, h):
        self.cx, self.cy, self.h = cx, cy, h
        self.m = self.sx = self.sy = self.px = self.py = 0.0
        self.a = self.b = self.c = self.d = None
        self.leaf = True

    def insert(self, x, y):
        if self.m == 0.0:
            self.px, self.py = x, y
        else:
            if self.leaf:
                self.leaf = False
                self.put(self.px, self.py)
            self.put(x, y)
        self.m += 1.0
        self.sx += x
        self.sy += y

    def put(self, x, y):
        h = self.h / 2
        if x < self.cx:
            if y < self.cy:
                if self.a is None:
                    self.a = Cell(self.cx - h, self.cy - h, h)
                self.a.insert(x, y)
            else:
                if self.b is None:
                    self.b = Cell(self.cx - h, self.cy + h, h)
                self.b.insert(x, y)
        elif y < self.cy:
            if self.c is None:
                self.c = Cell(self.cx + h, self.cy - h, h)
            self.c.insert(x, y)
        else:
            if self.d is None:
                self.d = Cell(self.cx + h, self.cy + h, h)
            self.d.insert(x, y)

    def force(self, x, y, theta):
        dx, dy = self.sx / self.m - x, self.sy / self.m - y
        r2 = dx * dx + dy * dy + 1e-2
        if self.leaf or self.h * self.h < theta * theta * r2:
            return self.m / math.sqrt(r2)
        s = 0.0
        for q in (self.a, self.b, self.c, self.d):
            if q is not None:
                s += q.force(x, y, theta)
        return s


def barnes_hut(xs):
    root = Cell(0.5, 0.5, 0.5)
    ys = [0.3 * (k % 4) + 0.05 * k for k in range(len(xs))]
    for x, y in zip(xs, ys):
        root.insert(x, y)
    s = 0.0
    for x, y in zip(xs, ys):
        s += root.force(x, y, 0.5)
    return s


def arrays_in_fields(xs):
    head = None
    for k in range(len(xs) - 1):
        p = Node(xs[k : k + 2] * 2.0, float(k))
        p.left, head = head, p
    s, q = 0.0, head
    while q is not None:
        q.x *= 1.5
        q.x = q.x + q.m
        s += q.x @ q.x
        q = q.left
    a, b = head, head.left
    c = a if xs[0] > 0.4 else b
    c.x = b.x
    b.x[0] = 5.0 * xs[1]
    return s + a.x.sum() * a.m + b.x.sum() * b.m


def a_ring(xs):
    first = last = None
    for x in xs:
        n = Node(0.0, x)
        if first is None:
            first = n
        else:
            last.right = n
        last = n
    last.right = first
    p, s = first, 0.0
    for k in range(11):
        s += p.m * (k + 1)
        p.m *= 0.9 * xs[k % 3]
        p = p.right
    return s


def none_again_and_the_same_object(xs):
    a, b, now, s = Node(0.0, xs[0]), Node(1.0, xs[1]), None, 0.0
    for k in range(len(xs)):
        now = a if k % 3 == 0 else b if k % 3 == 1 else None
        if now is not None:
            now.m = now.m * xs[k] + 1
            now.left = now if k > 2 else None
        s += a.m + 2 * b.m
        if a.left is a:
            s += 100
        if a.left is b.left:
            s += 1000
    return s


def none_has_no_fields(xs):
    a, now = Node(0.0, xs[0]), None
    for x in xs:
        try:
            s = now.m
        except AttributeError:
            s = 3.0
        a.m += s * x
        now = a if x > 0.5 else now
    return a.m


def two_parents_share_a_child(xs):
    a, b, child = Node(xs[0]), Node(xs[1]), Node(xs[2])
    a.left = b.right = child
    x = a if xs[3] > xs[1] else b
    if x.left is not None:
        x.left.m *= 3
    b.right.m += xs[0]
    child.m *= xs[1]
    return a.left.m * child.x + b.right.m * 2


@dataclass
class State:
    count: int
    weight: float


def a_machine_of_states(xs):
    idle, run, stop = State(0, 1.0), State(0, 2.0), State(0, 3.0)
    state, s = idle, 0.0
    for x in xs:
        state.count += 1
        state.weight *= 1 + x
        if state is idle:
            state = run if x > 0.3 else idle
        elif state is run:
            state = stop if x < 0.4 else run
        else:
            state = idle
        s += state.weight * state.count
    return s + idle.count + 10 * run.count + 100 * stop.count


@dataclass(frozen=True)
class Cons:
    head: float
    tail: Any


def frozen_lists(xs):
    def length(c):
        return 0 if c is None else 1 + length(c.tail)

    c = None
    for x in xs:
        c = Cons(x * x, c)
    n, s = length(c), 0.0
    while c is not None:
        s += c.head * n
        n -= 1
        c = c.tail
    return s


@dataclass
class Leafy:
    feature: int
    threshold: float
    left: Any = None
    right: Any = None
    value: float = 0.0


def walked(node, x):
    while node.left is not None:
        node = node.left if x[node.feature] < node.threshold else node.right
    return node.value * x[0]


def a_decision_tree(xs):
    right = Leafy(0, 0.9, Leafy(0, 0.0, value=5.0), Leafy(0, 0.0, value=2.0))
    return walked(Leafy(0, 0.5, Leafy(1, 0.2, value=1.0), right), xs)


@dataclass
class Branch:
    value: float
    kids: list = field(default_factory=list)
    parent: Any = None


def summed(branch, w):
    s = branch.value * w
    for kid in branch.kids:
        s += summed(kid, w * 0.5)
    return s


def lists_of_children(xs):
    root = Branch(1.0)
    here = root
    for x in xs:
        n = Branch(x, [], here)
        here.kids.append(n)
        if x > 0.4:
            here = n
        elif here.parent is not None:
            here = here.parent
    s, stack = 0.0, [(root, 1.0)]
    while stack:
        n, w = stack.pop()
        s += n.value * n.value * w
        for kid in n.kids:
            stack.append((kid, w * 0.5))
    return s + summed(root, xs[0])


class Vertex:
    def __init__(self, x):
        self.x = x
        self.near = []
        self.weights = []
        self.seen = False


def a_graph_with_lists_of_neighbours(xs):
    vertices = [Vertex(x) for x in xs]
    for i, v in enumerate(vertices):
        for j, u in enumerate(vertices):
            if i != j and abs(xs[i] - xs[j]) < 0.35:
                v.near.append(u)
                v.weights.append(xs[i] * xs[j])
    for _ in range(2):
        for v in vertices:
            s = 0.0
            for u, w in zip(v.near, v.weights):
                s += u.x * w
            v.x = 0.5 * v.x + 0.1 * s
    stack, s, k = [vertices[0]], 0.0, 1.0
    while stack:
        v = stack.pop()
        if v.seen:
            continue
        v.seen = True
        s += v.x * k
        k += 1.0
        for u in v.near:
            if not u.seen:
                stack.append(u)
    return s


class Quad:
    def __init__(self, depth):
        self.depth = depth
        self.kids = [None] * 4
        self.mass = 0.0

    def add(self, x, y, m):
        self.mass += m
        if self.depth == 0:
            return
        k = (1 if x >= 0.5 else 0) + (2 if y >= 0.5 else 0)
        if self.kids[k] is None:
            self.kids[k] = Quad(self.depth - 1)
        self.kids[k].add((x * 2) % 1.0, (y * 2) % 1.0, m * 0.9)

    def energy(self):
        s = self.mass * self.mass
        for kid in self.kids:
            if kid is not None:
                s += kid.energy()
        return s


def a_quadtree_with_a_list_of_four(xs):
    root = Quad(3)
    for i in range(len(xs)):
        root.add(xs[i] * 0.99, xs[i - 1] * 0.98, xs[i])
    return root.energy()


class Split:
    def __init__(self, point, axis):
        self.point, self.axis = point, axis
        self.left = self.right = None


def split(points, index, depth):
    if len(index) == 0:
        return None
    axis = depth % 2
    order = index[np.argsort(points[index, axis])]
    mid = len(order) // 2
    n = Split(points[order[mid]] * 1.0, axis)
    n.left = split(points, order[:mid].copy(), depth + 1)
    n.right = split(points, order[mid + 1 :].copy(), depth + 1)
    return n


def nearest(n, q, best):
    if n is None:
        return best
    best = min(best, ((n.point - q) ** 2).sum())
    diff = q[n.axis] - n.point[n.axis]
    near, far = (n.left, n.right) if diff < 0 else (n.right, n.left)
    best = nearest(near, q, best)
    return nearest(far, q, best) if diff * diff < best else best


def a_tree_of_points(xs):
    points = np.stack([np.sin(7 * xs * np.arange(1, 8)), np.cos(5 * xs + np.arange(7))], axis=1)
    root = split(points, np.arange(7), 0)
    s = 0.0
    for k in range(2):
        s += nearest(root, np.array([0.1 * k + xs[k] * 0.1, 0.3 - 0.2 * k]), 1e9)
    return s


class Holder:
    def __init__(self, root):
        self.root = root


def held_and_in_a_circle(xs):
    a, b = Node(xs[0]), Node(xs[1])
    a.left, b.left = b, a
    first, second = Holder(a), Holder(b)
    held = first if xs[2] > 0.5 else second
    a.m = 5.0 * xs[3]
    s, p = held.root.m, a
    for x in xs:
        p.m, p.left.m = p.left.m * x, p.m + x
        p = p.left if x > 0.2 else p
    return s + held.root.m - 2 * b.m


def sorted_and_in_a_heap(xs):
    nodes, waiting = [], []
    for k, x in enumerate(xs):
        nodes.append(Node(x))
        heapq.heappush(waiting, (x, k, nodes[-1]))
    nodes[0].left, nodes[2].left = nodes[3], nodes[0]
    nodes.sort(key=lambda n: n.x)
    max(nodes, key=lambda n: n.x).m += 1
    s, w = sum(n.m * n.x * (k + 1) for k, n in enumerate(nodes)), 1.0
    while waiting:
        x, k, n = heapq.heappop(waiting)
        if n.left is not None:
            n.left.m += x
        s += w * n.m * k
        w *= 0.8
    return s


PROGRAMS = (
    held_and_in_a_circle,
    sorted_and_in_a_heap,
    lists_of_children,
    a_graph_with_lists_of_neighbours,
    a_quadtree_with_a_list_of_four,
    a_tree_of_points,
    stack_as_a_list_of_links,
    queue_with_two_ends,
    reversed_in_place,
    one_or_the_other_is_changed,
    best_so_far_is_changed,
    search_tree_by_loops,
    search_tree_by_recursion,
    tree_of_halves,
    barnes_hut,
    arrays_in_fields,
    a_ring,
    none_again_and_the_same_object,
    none_has_no_fields,
    two_parents_share_a_child,
    a_machine_of_states,
    frozen_lists,
    a_decision_tree,
)
