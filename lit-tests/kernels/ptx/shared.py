# RUN: mutadc --target=sm_90 --emit=ptx -o - --grad scattered:u %s | filecheck %s
# RUN: mutadc --target=sm_90 --emit=ptx -o - %s | filecheck %s --check-prefix=PRIMAL
"""Sums of a block are in shared memory; threads that meet in an element of the adjoint add atomically."""

from mutad import compile


@compile
def scattered(u: "f64[:]", k: "i64[:]"):
    return (u[k] ** 2).sum()


# CHECK: .visible .entry scattered_grad_
# CHECK: atom.{{.*}}global.add.f64
# PRIMAL: .shared .align {{[0-9]+}} .b8 scattered_{{.*}}[2048]
# PRIMAL-NOT: {{\b(atom|red)\.}}
# PRIMAL: st.shared.b64
# PRIMAL: bar{{.*}}sync
# PRIMAL: ld.shared.b64
# PRIMAL-NOT: {{\b(atom|red)\.}}
