#include "plain.h"

static double program(const double *restrict start, int64_t n, int64_t m, int64_t steps) {
  double *u = copied(start, n * m), *v = copied(start, n * m), total = 0.0;
  for (int64_t t = 0; t < steps; t++) {
    for (int64_t i = 1; i < n - 1; i++)
      for (int64_t j = 1; j < m - 1; j++)
        v[i * m + j] = 0.25 * (u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] + u[i * m + j + 1]);
    double *other = u;
    u = v;
    v = other;
  }
  for (int64_t i = 0; i < n * m; i++) total += u[i] * u[i];
  free(u);
  free(v);
  return total;
}
