#include "plain.h"

static double program(const double *restrict points, int64_t n, int64_t d, const double *restrict centres, int64_t k,
                      int64_t d1) {
  double total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double best = INFINITY;
    for (int64_t c = 0; c < k; c++) {
      double square = 0.0;
      for (int64_t e = 0; e < d; e++) {
        double away = points[i * d + e] - centres[c * d + e];
        square += away * away;
      }
      if (square < best) best = square;
    }
    total += best;
  }
  return total;
}
