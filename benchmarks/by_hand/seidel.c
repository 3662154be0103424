/* What a row takes from the rows beside it is vectors; one addition and the division recur.

   w[i,j] is the ninth part of the cotangent of what was stored to [i,j]. It has reached the readers of
   this sweep (the row below, the right neighbour), then goes to those of the last sweep. */
#include "memory.h"

static void sweep(double *restrict u, double *restrict row, int64_t n, int64_t m) {
  for (int64_t i = 1; i < n - 1; i++) {
    double *restrict mid = u + i * m;
    const double *restrict up = mid - m, *restrict down = mid + m;
    for (int64_t j = 1; j < m - 1; j++) {
      row[j] = up[j - 1] + up[j] + up[j + 1];
      row[m + j] = down[j - 1] + down[j] + down[j + 1];
    }
    double left = mid[0];
    for (int64_t j = 1; j < m - 1; j++)
      mid[j] = left = (row[j] + left + mid[j] + mid[j + 1] + row[m + j]) / 9.0;
  }
}

double primal(const double *start, int64_t n, int64_t m, int64_t sweeps) {
  double *u = doubles(n * m), *row = doubles(2 * m);
  memcpy(u, start, (size_t)(n * m) * sizeof *u);
  for (int64_t t = 0; t < sweeps; t++) sweep(u, row, n, m);
  double value = squares(u, n * m);
  give(u, n * m);
  give(row, 2 * m);
  return value;
}

double gradient(const double *start, int64_t n, int64_t m, int64_t sweeps, double *bar) {
  double *w = doubles(n * m), *row = doubles(2 * m);
  memcpy(w, start, (size_t)(n * m) * sizeof *w);
  for (int64_t t = 0; t < sweeps; t++) sweep(w, row, n, m);
  double value = squares(w, n * m);
  twice(bar, w, n * m);
  memset(w, 0, (size_t)(n * m) * sizeof *w);
  for (int64_t t = 0; t < sweeps; t++) {
    for (int64_t i = n - 2; i > 0; i--) {
      double *restrict mid = w + i * m;
      const double *restrict up = mid - m, *restrict down = mid + m, *restrict own = bar + i * m;
      if (t == 0)
        for (int64_t j = 1; j < m - 1; j++)
          row[j] = (own[j] + (down[j - 1] + down[j] + down[j + 1])) * (1.0 / 9.0);
      else
        for (int64_t j = 1; j < m - 1; j++)
          row[j] = ((mid[j] + mid[j - 1]) + (up[j - 1] + up[j] + up[j + 1]) +
                    (down[j - 1] + down[j] + down[j + 1])) * (1.0 / 9.0);
      double right = 0.0;
      for (int64_t j = m - 2; j > 0; j--) mid[j] = right = row[j] + right * (1.0 / 9.0);
    }
    for (int64_t j = 0; j < m; j++) { /* edges: stored by nobody, read by their neighbours */
      const double *top = w + m + j, *bottom = w + (n - 2) * m + j;
      bar[j] += (j ? top[-1] : 0.0) + top[0] + (j < m - 1 ? top[1] : 0.0);
      bar[(n - 1) * m + j] += (j ? bottom[-1] : 0.0) + bottom[0] + (j < m - 1 ? bottom[1] : 0.0);
    }
    for (int64_t i = 1; i < n - 1; i++) {
      const double *left = w + i * m + 1, *right = w + i * m + m - 2;
      bar[i * m] += left[-m] + left[0] + left[m];
      bar[i * m + m - 1] += right[-m] + right[0] + right[m];
    }
  }
  if (sweeps)
    for (int64_t i = 1; i < n - 1; i++)
      for (int64_t j = 1; j < m - 1; j++) {
        const double *mid = w + i * m + j, *up = mid - m;
        bar[i * m + j] = mid[0] + mid[-1] + up[-1] + up[0] + up[1];
      }
  give(w, n * m);
  give(row, 2 * m);
  return value;
}
