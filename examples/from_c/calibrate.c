/*
 * The calibration of ../hillslope.py as a C program: the model is Python, its gradient was compiled by
 * mutadc, and everything else is here. Reads the problem that compare.py writes.
 *
 *     ./calibrate problem.bin recovered.bin
 */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hillslope.h"
#include "lbfgs.h"

/* How problem.bin begins; the arrays follow. */
typedef struct {
    int64_t rows, columns, rivers, steps, iterations;
    double dx, dy, dt, typical, spread, range;
} parameters;

typedef struct {
    parameters p;
    int64_t cells, radius;
    double *start, *observed, *bed, *weights;
    int64_t *row, *column;
    double *log_kappa, *slope, *row_sums; /* of the current point; `row_sums` is for `smooth` */
    void *work;                           /* what a gradient takes, for all of them */
    int64_t work_bytes;
    double misfit, *seconds;
    int calls, room;
} problem;

static void *allocated(size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    if (!block) {
        fprintf(stderr, "calibrate: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return block;
}

/* Processor time: what else the machine does has less of a part in it. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- the prior: a Gaussian filter, edges mirrored, which is its own adjoint ---------------- */

static int64_t mirrored(int64_t i, int64_t n) {
    i = i < 0 ? -1 - i : i;
    i %= 2 * n;
    return i < n ? i : 2 * n - 1 - i;
}

static void filter_line(const problem *q, const double *in, double *out, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; i++) {
        double total = q->weights[0] * in[i * stride];
        for (int64_t k = q->radius; k > 0; k--)
            total += q->weights[k] * (in[mirrored(i - k, n) * stride] + in[mirrored(i + k, n) * stride]);
        out[i * stride] = total;
    }
}

/* out = the square root of the prior's covariance, times in. */
static void smooth(const problem *q, const double *in, double *out) {
    int64_t n = q->p.rows, m = q->p.columns;
    for (int64_t j = 0; j < m; j++) filter_line(q, in + j, q->row_sums + j, n, m);
    for (int64_t i = 0; i < n; i++) filter_line(q, q->row_sums + i * m, out + i * m, m, 1);
    for (int64_t k = 0; k < q->cells; k++) out[k] *= q->p.spread * q->p.range;
}

static void make_filter(problem *q) {
    double total = 0;
    q->radius = (int64_t)(4 * q->p.range + 0.5);
    q->weights = (double *)allocated((size_t)(q->radius + 1) * sizeof(double));
    for (int64_t k = 0; k <= q->radius; k++) {
        q->weights[k] = exp(-0.5 * (double)(k * k) / (q->p.range * q->p.range));
        total += (k ? 2 : 1) * q->weights[k];
    }
    for (int64_t k = 0; k <= q->radius; k++) q->weights[k] /= total;
}

/* --- the objective: misfit + prior over white, where log kappa = log typical + smooth(white) - */

static int misfit_and_slope(problem *q) {
    const parameters *p = &q->p;
    hillslope_f64_2 log_kappa = hillslope_f64_2_of(q->log_kappa, p->rows, p->columns);
    hillslope_f64_2 start = hillslope_f64_2_of(q->start, p->rows, p->columns);
    hillslope_f64_2 observed = hillslope_f64_2_of(q->observed, p->rows, p->columns);
    hillslope_i64_1 row = hillslope_i64_1_of(q->row, p->rivers);
    hillslope_i64_1 column = hillslope_i64_1_of(q->column, p->rivers);
    hillslope_f64_1 bed = hillslope_f64_1_of(q->bed, p->rivers);
    hillslope_f64_2 slope = hillslope_f64_2_of(q->slope, p->rows, p->columns);
    return misfit_value_and_grad(&log_kappa, &start, &observed, &row, &column, &bed, p->dx, p->dy, p->dt,
                                 p->steps, &q->misfit, &slope, q->work, q->work_bytes);
}

static int evaluate(void *state, const double *white, double *value, double *g) {
    problem *q = (problem *)state;
    double prior = 0, began;
    int status;
    smooth(q, white, q->log_kappa);
    for (int64_t k = 0; k < q->cells; k++) q->log_kappa[k] += log(q->p.typical);
    began = now();
    status = misfit_and_slope(q);
    if (q->calls < q->room) q->seconds[q->calls++] = now() - began;
    smooth(q, q->slope, g);
    for (int64_t k = 0; k < q->cells; k++) {
        prior += white[k] * white[k];
        g[k] += white[k];
    }
    *value = q->misfit + 0.5 * prior;
    return status;
}

static void tell(void *state, int iteration) {
    problem *q = (problem *)state;
    if (iteration % 5 == 0) printf("  iteration %2d   misfit %14.1f\n", iteration, q->misfit);
    fflush(stdout);
}

/* --- files --------------------------------------------------------------------------------- */

static void *array(FILE *file, int64_t count, size_t item) {
    void *made = allocated((size_t)count * item);
    if (fread(made, item, (size_t)count, file) != (size_t)count) {
        fprintf(stderr, "calibrate: the problem ends too early\n");
        exit(1);
    }
    return made;
}

static problem opened(const char *path) {
    problem q;
    FILE *file = fopen(path, "rb");
    memset(&q, 0, sizeof q);
    if (!file || fread(&q.p, sizeof q.p, 1, file) != 1) {
        fprintf(stderr, "calibrate: %s cannot be read\n", path);
        exit(1);
    }
    q.cells = q.p.rows * q.p.columns;
    q.start = (double *)array(file, q.cells, sizeof(double));
    q.observed = (double *)array(file, q.cells, sizeof(double));
    q.bed = (double *)array(file, q.p.rivers, sizeof(double));
    q.row = (int64_t *)array(file, q.p.rivers, sizeof(int64_t));
    q.column = (int64_t *)array(file, q.p.rivers, sizeof(int64_t));
    fclose(file);
    return q;
}

static int shorter(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **names) {
    if (count != 3) {
        fprintf(stderr, "usage: calibrate problem.bin recovered.bin\n");
        return 2;
    }
    problem q = opened(names[1]);
    size_t bytes = (size_t)q.cells * sizeof(double);
    double *white = (double *)allocated(bytes);
    void *block;
    int status;
    FILE *file;

    make_filter(&q);
    q.log_kappa = (double *)allocated(bytes);
    q.slope = (double *)allocated(bytes);
    q.row_sums = (double *)allocated(bytes);
    q.room = 20 * (int)q.p.iterations + 1;
    q.seconds = (double *)allocated((size_t)q.room * sizeof(double));
    q.work_bytes = misfit_value_and_grad_worksize(q.p.rows, q.p.columns, q.p.rows, q.p.columns, q.p.rivers,
                                                  q.p.steps);
    if (q.work_bytes < 0) {
        fprintf(stderr, "calibrate: the problem is too large\n");
        return 1;
    }
    block = allocated((size_t)q.work_bytes + 64);
    q.work = hillslope_aligned(block);

    for (int64_t k = 0; k < q.cells; k++) white[k] = 0;
    status = lbfgs((size_t)q.cells, white, (int)q.p.iterations, evaluate, tell, &q);
    if (status != 0) {
        fprintf(stderr, "calibrate: %s\n", status < 0 ? "no memory" : hillslope_strerror(status));
        return 1;
    }
    smooth(&q, white, q.log_kappa);
    file = fopen(names[2], "wb");
    if (!file || fwrite(q.log_kappa, 1, bytes, file) != bytes || fclose(file) != 0) {
        fprintf(stderr, "calibrate: %s cannot be written\n", names[2]);
        return 1;
    }
    qsort(q.seconds, (size_t)q.calls, sizeof(double), shorter);
    printf("misfit %.17g\n", q.misfit);
    printf("gradients %d\n", q.calls);
    printf("seconds %.6f\n", q.seconds[q.calls / 2]);
    printf("work %lld\n", (long long)q.work_bytes);

    free(block);
    free(white);
    free(q.start), free(q.observed), free(q.bed), free(q.row), free(q.column);
    free(q.log_kappa), free(q.slope), free(q.row_sums), free(q.seconds), free(q.weights);
    return 0;
}
