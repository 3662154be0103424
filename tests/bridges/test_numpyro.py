"""A potential of NumPyro through `mutad.jax`: the posterior is that of quadrature."""

from __future__ import annotations

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import mutad.jax
from mutad import compile

jax.config.update("jax_enable_x64", True)
STEPS = 30


@compile(grad=True, opt=1)
def misfit(k, seen):
    u = np.zeros(seen.size)
    u[0] = 1.0
    for _ in range(STEPS):
        u[1:-1] += k * (u[:-2] - 2.0 * u[1:-1] + u[2:])
    return 5000.0 * ((u - seen) ** 2).sum()


def test_the_posterior_is_that_of_quadrature() -> None:
    seen = np.zeros(20)
    seen[0] = 1.0
    for _ in range(STEPS):
        seen[1:-1] += 0.2 * (seen[:-2] - 2.0 * seen[1:-1] + seen[2:])
    seen += 0.01 * np.random.default_rng(0).standard_normal(20)
    energy = mutad.jax.wrap(misfit)

    def model() -> None:
        k = numpyro.sample("k", dist.Uniform(0.0, 0.4))
        numpyro.factor("data", -energy(k, seen))

    chain = MCMC(NUTS(model), num_warmup=150, num_samples=300, progress_bar=False)
    chain.run(jax.random.PRNGKey(0))
    found = chain.get_samples()["k"]
    grid = np.linspace(0.15, 0.25, 1001)
    weights = np.exp([-misfit(k, seen) for k in grid])
    weights /= weights.sum()
    mean = weights @ grid
    spread = np.sqrt(weights @ (grid - mean) ** 2)
    assert abs(found.mean() - mean) < 0.3 * spread
    assert 0.7 < found.std() / spread < 1.4
