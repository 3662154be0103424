/* Saved: each state, the sine and the cosine that led to the next. The two other ones that the adjoint needs
   do not wait for its chain, so they are vectors, in blocks. */
#include <math.h>

#include "memory.h"

enum { BLOCK = 256 };

__attribute__((simd("notinbranch"))) double sin(double);
__attribute__((simd("notinbranch"))) double cos(double);

double primal(const double *x, int64_t n, double a, double b) {
  double state = 0.5, total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    state = a * sin(state) + b * cos(x[i] * state);
    total += state * x[i];
  }
  return total;
}

double gradient(const double *x, int64_t n, double a, double b, double *bar, double *ab, double *bb) {
  double *before = doubles(3 * n), *sine = before + n, *cosine = sine + n;
  double state = 0.5, total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    before[i] = state;
    sine[i] = sin(state);
    cosine[i] = cos(x[i] * state);
    state = a * sine[i] + b * cosine[i];
    total += state * x[i];
  }
  double slope[BLOCK], inner[BLOCK], s_bar = 0.0, a_bar = 0.0, b_bar = 0.0, after = state;
  for (int64_t end = n; end > 0; end -= BLOCK) {
    int64_t begin = end > BLOCK ? end - BLOCK : 0;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
      inner[i - begin] = -b * sin(x[i] * before[i]);
      slope[i - begin] = a * cos(before[i]) + inner[i - begin] * x[i];
    }
    for (int64_t i = end - 1; i >= begin; i--) {
      s_bar += x[i];
      a_bar += s_bar * sine[i];
      b_bar += s_bar * cosine[i];
      bar[i] = after + s_bar * inner[i - begin] * before[i];
      s_bar *= slope[i - begin];
      after = before[i];
    }
  }
  *ab = a_bar;
  *bb = b_bar;
  give(before, 3 * n);
  return total;
}
