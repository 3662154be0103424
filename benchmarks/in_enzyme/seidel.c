#include "plain.h"

static double program(const double *restrict start, int64_t n, int64_t m, int64_t sweeps) {
  double *u = copied(start, n * m), total = 0.0;
  for (int64_t t = 0; t < sweeps; t++)
    for (int64_t i = 1; i < n - 1; i++)
      for (int64_t j = 1; j < m - 1; j++) {
        double *at = u + i * m + j;
        double above = at[-m - 1] + at[-m] + at[-m + 1], below = at[m - 1] + at[m] + at[m + 1];
        at[0] = (above + at[-1] + at[0] + at[1] + below) / 9.0;
      }
  for (int64_t i = 0; i < n * m; i++) total += u[i] * u[i];
  free(u);
  return total;
}
