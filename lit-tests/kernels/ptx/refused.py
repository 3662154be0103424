# RUN: not mutadc --target sm_90 --emit ptx -o - --function grown %s 2>&1 | filecheck %s --check-prefix LIST
# RUN: not mutadc --target sm_90 --emit ptx -o - --function deeper %s 2>&1 | filecheck %s --check-prefix CALL
# RUN: not mutadc --target sm_90 --emit ptx -o - --function chased %s 2>&1 | filecheck %s --check-prefix LOOP
"""What no kernel can do is refused by line, with a way out; nothing is written."""


def grown(u: "f64[:]", n: int):
    # LIST-NOT: .entry
    # LIST: {{refused.py:[0-9]+:12}}: error: this list, dict or set grows, and a kernel reads it
    kept = [u * 2.0]
    while len(kept) < n:
        kept.append(kept[-1] * kept[-1])
    # LIST: way out: use an array of the size that is needed
    return kept[-1].sum()


# CALL-NOT: .entry
# CALL: error: this function is recursive: a device runs no such function
# CALL: way out: write it as a loop
def deeper(u: "f64[:]", n: int):
    if n > 0:
        deeper(u[1:], n - 1)
    u *= 2.0


# LOOP-NOT: .entry
# LOOP: error: the iterations of this loop need what others have stored, element by element
# LOOP: way out: write it with whole arrays (slices), let an outer loop go over independent rows
def chased(u: "f64[:]", k: "i64[:]"):
    v = u
    for i in range(k.size):
        if k[i] > 0:
            v = u[1:]
        v[i] = 1.0
    return v.sum()
