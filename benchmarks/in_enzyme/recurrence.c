#include "plain.h"

static double program(const double *restrict x, int64_t n, double a, double b) {
  double state = 0.5, total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    state = a * sin(state) + b * cos(x[i] * state);
    total += state * x[i];
  }
  return total;
}
