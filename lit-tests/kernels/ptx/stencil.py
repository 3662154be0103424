# RUN: mutadc --target=sm_90 --emit=ptx -o - --grad sweep:u %s | filecheck %s
# RUN: mutadc --target=sm_90 --emit=ptx -o - --grad sweep:u %s | filecheck %s --check-prefix=GATHERED
# RUN: mutadc --target=sm_90 --emit=ptx -o - %s | filecheck %s --check-prefix=EXACT
# RUN: mutadc --target=sm_90 --emit=ptx -o - --fastmath %s | filecheck %s --check-prefix=FAST
"""Arrays are global memory, what is only read is cached; nothing else is loaded or stored."""

from mutad import compile


@compile
def sweep(u: "f64[:]", k: "f64[:]"):
    u[1:-1] = u[1:-1] + k[1:-1] * (u[:-2] - 2.0 * u[1:-1] + u[2:]) ** 2
    return u[0] + u[1]


# No address of which nobody knows where it is.
# CHECK: .target sm_90
# CHECK-NOT: {{\b(ld|st)\.[bfu][0-9]}}
# CHECK: .visible .entry sweep_0(
# CHECK: .maxntid 256
# CHECK-NOT: {{\b(ld|st)\.[bfu][0-9]}}
# CHECK: ld.global.nc.b64
# CHECK-NOT: {{\b(ld|st)\.[bfu][0-9]}}
# CHECK: st.global.b64
# CHECK-NOT: {{\b(ld|st)\.[bfu][0-9]}}
# CHECK-NOT: .local

# The adjoint gathers: nothing is added atomically.
# GATHERED: .visible .entry sweep_grad_0(
# GATHERED-NOT: {{\b(atom|red)\.}}
# GATHERED: st.global.b64
# GATHERED-NOT: {{\b(atom|red)\.}}

# Products and sums are fused only where that is asked for.
# EXACT: mul.rn.f64
# EXACT-NOT: {{\bfma\b}}
# EXACT: add.rn.f64
# EXACT-NOT: {{\bfma\b}}
# FAST: fma.rn.f64
