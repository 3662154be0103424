#include "plain.h"

static double program(const double *restrict start, int64_t n, double nu, int64_t steps) {
  double *u = copied(start, n), total = 0.0;
  for (int64_t t = 0; t < steps; t++) {
    double left = u[0];
    for (int64_t i = 1; i < n - 1; i++) {
      double mid = u[i];
      u[i] = mid + (nu * (u[i + 1] - 2.0 * mid + left) - 0.05 * mid * (u[i + 1] - left));
      left = mid;
    }
  }
  for (int64_t i = 0; i < n; i++) total += u[i] * u[i];
  free(u);
  return total;
}
