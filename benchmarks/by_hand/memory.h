/* Memory that is counted (`peak` tells the most that was held since it was asked last), and kept for the
   next call: fresh pages cost as much as a sweep. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 8 };

static size_t held, most;
static struct {
  double *block;
  int64_t count;
} kept[KEPT];

static double *doubles(int64_t count) {
  held += (size_t)count * sizeof(double);
  if (held > most) most = held;
  for (int k = 0; k < KEPT; k++)
    if (kept[k].block && kept[k].count == count) {
      double *found = kept[k].block;
      kept[k].block = NULL;
      return found;
    }
  return aligned_alloc(64, ((size_t)count * sizeof(double) + 63) & ~(size_t)63);
}

static void give(double *block, int64_t count) {
  held -= (size_t)count * sizeof(double);
  for (int k = 0; k < KEPT; k++)
    if (!kept[k].block) {
      kept[k].block = block;
      kept[k].count = count;
      return;
    }
  free(block);
}

int64_t peak(void) {
  int64_t found = (int64_t)most;
  most = held;
  return found;
}

/* Sums are in any order where the source says so (`omp simd reduction`). */
static inline double squares(const double *u, int64_t n) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < n; i++) total += u[i] * u[i];
  return total;
}

static inline void twice(double *bar, const double *u, int64_t n) {
  for (int64_t i = 0; i < n; i++) bar[i] = 2.0 * u[i];
}
