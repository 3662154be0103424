#include "plain.h"

static double program(const double *restrict start, int64_t n, double nu, int64_t steps) {
  double *u = copied(start, n), *change = zeros(n), total = 0.0;
  for (int64_t t = 0; t < steps; t++) {
    for (int64_t i = 1; i < n - 1; i++)
      change[i] = nu * (u[i + 1] - 2.0 * u[i] + u[i - 1]) - 0.05 * u[i] * (u[i + 1] - u[i - 1]);
    for (int64_t i = 1; i < n - 1; i++) u[i] += change[i];
  }
  for (int64_t i = 0; i < n; i++) total += u[i] * u[i];
  free(u);
  free(change);
  return total;
}
