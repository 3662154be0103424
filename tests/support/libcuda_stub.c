/* NVIDIA's driver as a library of the host, as far as libraries of mutadc call it.

   A module is the path of a library with kernels as functions of the host; each runs a whole launch. The
   memory of the device lies elsewhere than its addresses say: whoever reads one on the host crashes. Work
   waits until somebody has to know what it does. New memory is NaN. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int Result;
typedef uint64_t Address;
typedef void (*Kernel)(void **parameters, int64_t blocks, int64_t shift);
enum { NO_MEMORY = 2, INVALID = 1, NOT_FOUND = 500, ILLEGAL = 700 };
enum { MOST = 128 };

typedef struct {
    Kernel run;
    const signed char *bytes;
} Function;

typedef struct {
    int turned[2], rows, columns, depth, apart[3];
    double times, plus;
} Product;

typedef struct Step {
    struct Step *next;
    Product product;
    const Function *kernel;
    int64_t blocks;
    uint64_t words[MOST];
    Address target;
    uint64_t value;
    size_t size, count;
} Step;

typedef struct {
    Step *first, *last;
} Steps;

static char *addresses, *memory;
static size_t used, room = (size_t)1 << 28;
static Steps stream, graph;
static struct {
    Address at;
    size_t whole;
    int live;
} blocks[1 << 16];
static int block_count;
static int capturing, context = 7, is_current = 1;
long stub_live, stub_launches, stub_graphs, stub_fails_at, stub_products, stub_refuses;

static int64_t shift(void) {
    if (!addresses) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        addresses = mmap(NULL, room, PROT_NONE, flags, -1, 0);
        memory = mmap(NULL, room, PROT_READ | PROT_WRITE, flags, -1, 0);
    }
    return memory - addresses;
}

int64_t stub_shift(void) { return shift(); }
void stub_leave(int left) { is_current = !left; }

static int within(Address at, size_t bytes) {
    Address first = (Address)(uintptr_t)addresses;
    return at >= first && at + bytes <= first + used;
}

static void *moved(Address at) { return (char *)(uintptr_t)at + shift(); }

static int fails(void) { return stub_fails_at > 0 && --stub_fails_at == 0; }

static void put(Steps *to, const Step *step) {
    Step *own = malloc(sizeof *own);
    *own = *step;
    own->next = NULL;
    if (to->last)
        to->last->next = own;
    else
        to->first = own;
    to->last = own;
}

/* By columns, as cuBLAS does; the elements of `c` are not read where nothing of them is kept. */
static void multiply(const Step *step) {
    const Product *p = &step->product;
    char *at[3];
    for (int k = 0; k < 3; ++k)
        at[k] = moved(step->words[k]);
#define AT(type, k, i, j) ((type *)at[k])[(i) + (size_t)(j) * p->apart[k]]
#define FACTOR(type, k, i, j) (p->turned[k] ? AT(type, k, j, i) : AT(type, k, i, j))
#define ALL(type)                                                                                              \
    for (int i = 0; i < p->rows; ++i)                                                                          \
        for (int j = 0; j < p->columns; ++j) {                                                                 \
            type sum = 0;                                                                                      \
            for (int l = 0; l < p->depth; ++l)                                                                 \
                sum += FACTOR(type, 0, i, l) * FACTOR(type, 1, l, j);                                          \
            AT(type, 2, i, j) = (type)p->times * sum + (p->plus != 0 ? (type)p->plus * AT(type, 2, i, j) : 0); \
        }
    if (step->size == 8)
        ALL(double)
    else
        ALL(float)
}

static void run(const Step *step) {
    void *places[MOST];
    if (step->product.rows) {
        multiply(step);
        return;
    }
    if (!step->kernel) {
        for (size_t k = 0; k < step->count; ++k)
            memcpy((char *)moved(step->target) + k * step->size, &step->value, step->size);
        return;
    }
    for (int k = 0; k < MOST; ++k)
        places[k] = (void *)&step->words[k];
    step->kernel->run(places, step->blocks, shift());
}

static void drop(Steps *steps) {
    while (steps->first) {
        Step *step = steps->first;
        steps->first = step->next;
        free(step);
    }
    steps->last = NULL;
}

static void drain(void) {
    for (Step *step = stream.first; step; step = step->next)
        run(step);
    drop(&stream);
}

static Result later(const Step *step) {
    put(capturing ? &graph : &stream, step);
    return 0;
}

Result cuInit(unsigned flags) { return flags ? INVALID : 0; }

Result cuCtxGetCurrent(void **place) {
    *place = is_current ? &context : NULL;
    return 0;
}

Result cuCtxSetCurrent(void *one) {
    is_current = one == &context;
    return one && !is_current ? INVALID : 0;
}

Result cuModuleLoadData(void **place, const char *path) {
    *place = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*place)
        fprintf(stderr, "%s\n", dlerror());
    return *place ? 0 : 209;
}

Result cuModuleGetFunction(void **place, void *module, const char *name) {
    char told[256];
    Function *found = malloc(sizeof *found);
    snprintf(told, sizeof told, "%s_bytes", name);
    found->run = (Kernel)(uintptr_t)dlsym(module, name);
    found->bytes = dlsym(module, told);
    *place = found;
    return found->run && found->bytes ? 0 : NOT_FOUND;
}

Result cuModuleUnload(void *module) {
    drain();
    return dlclose(module) ? INVALID : 0;
}

Result cuMemAlloc(Address *place, size_t bytes) {
    size_t whole = (bytes + 511) / 512 * 512 + 512; /* what is between is nobody's */
    if (!bytes || capturing)
        return INVALID;
    shift();
    drain();
    int k = 0;
    while (k < block_count && (blocks[k].live || blocks[k].whole != whole))
        ++k;
    if (k == 1 << 16 || (k == block_count && used + whole > room))
        return NO_MEMORY;
    if (k == block_count) {
        blocks[block_count++].at = (Address)(uintptr_t)addresses + used;
        used += whole;
    }
    blocks[k].whole = whole;
    blocks[k].live = 1;
    *place = blocks[k].at;
    memset(moved(*place), 0xff, whole);
    ++stub_live;
    return 0;
}

Result cuMemFreeAsync(Address at, void *where) {
    int k = 0;
    (void)where;
    while (k < block_count && blocks[k].at != at)
        ++k;
    if (k == block_count || !blocks[k].live || capturing)
        return INVALID;
    blocks[k].live = 0;
    --stub_live;
    return 0;
}

Result cuMemAllocAsync(Address *place, size_t bytes, void *where) {
    (void)where;
    return fails() ? NO_MEMORY : cuMemAlloc(place, bytes);
}
Result cuMemFree(Address at) { return cuMemFreeAsync(at, NULL); }

static Result set(Address at, uint64_t value, size_t size, size_t count) {
    Step step = {.target = at, .value = value, .size = size, .count = count};
    if (!within(at, size * count))
        return ILLEGAL;
    return at % size ? INVALID : later(&step);
}

Result cuMemsetD8Async(Address at, unsigned char v, size_t n, void *s) { return (void)s, set(at, v, 1, n); }
Result cuMemsetD16Async(Address at, unsigned short v, size_t n, void *s) { return (void)s, set(at, v, 2, n); }
Result cuMemsetD32Async(Address at, unsigned v, size_t n, void *s) { return (void)s, set(at, v, 4, n); }
Result cuMemsetD8(Address at, unsigned char v, size_t n) { return set(at, v, 1, n); }

Result cuStreamSynchronize(void *where) {
    (void)where;
    if (capturing)
        return 900;
    drain();
    return fails() ? ILLEGAL : 0;
}

Result cuMemcpyDtoHAsync(void *target, Address at, size_t bytes, void *where) {
    if (capturing || !within(at, bytes))
        return ILLEGAL;
    (void)where;
    drain();
    memcpy(target, moved(at), bytes);
    return 0;
}

Result cuLaunchKernel(const Function *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *where, void **parameters, void **extra) {
    Step step = {.kernel = kernel, .blocks = gx};
    (void)where;
    if (!gx || gy != 1 || gz != 1 || bx != 256 || by != 1 || bz != 1 || shared || extra)
        return INVALID;
    for (int k = 0; kernel->bytes[k]; ++k)
        memcpy(&step.words[k], parameters[k], kernel->bytes[k]);
    ++stub_launches;
    return later(&step);
}

Result cuStreamBeginCapture(void *where, int mode) {
    if (!where || capturing || mode != 1)
        return 900;
    capturing = 1;
    return 0;
}

Result cuStreamEndCapture(void *where, void **place) {
    Steps *made = malloc(sizeof *made);
    (void)where;
    capturing = 0;
    *made = graph;
    graph.first = graph.last = NULL;
    *place = made;
    return 0;
}

Result cuGraphInstantiateWithFlags(void **place, const Steps *made, uint64_t flags) {
    Steps *own = calloc(1, sizeof *own);
    for (Step *step = made->first; step; step = step->next)
        put(own, step);
    *place = own;
    return flags ? INVALID : 0;
}

Result cuGraphLaunch(const Steps *made, void *where) {
    (void)where;
    ++stub_graphs;
    for (Step *step = made->first; step; step = step->next)
        put(&stream, step);
    return 0;
}

Result cuGraphDestroy(Steps *made) { return drop(made), free(made), 0; }
Result cuGraphExecDestroy(Steps *made) { return drop(made), free(made), 0; }
Result cuEventRecord(void *event, void *where) { return (void)event, (void)where, INVALID; }
Result cuStreamWaitEvent(void *where, void *event, unsigned n) { return (void)where, (void)event, (void)n, INVALID; }

/* cuBLAS: a handle is where its stream is kept. */
Result cublasGetStream_v2(void **handle, void **place) { return *place = *handle, 0; }
Result cublasSetStream_v2(void **handle, void *where) { return *handle = where, 0; }

static Result product(size_t size, int ta, int tb, int m, int n, int k, double times, Address a, int lda, Address b,
                      int ldb, double plus, Address c, int ldc) {
    Step step = {.product = {{ta, tb}, m, n, k, {lda, ldb, ldc}, times, plus}, .words = {a, b, c}, .size = size};
    ++stub_products;
    return stub_refuses ? 13 : m < 1 || n < 1 || k < 1 ? 7 : later(&step);
}

Result cublasDgemm_v2(void **handle, int ta, int tb, int m, int n, int k, const double *times, Address a, int lda,
                      Address b, int ldb, const double *plus, Address c, int ldc) {
    (void)handle;
    return product(8, ta, tb, m, n, k, *times, a, lda, b, ldb, *plus, c, ldc);
}

Result cublasSgemm_v2(void **handle, int ta, int tb, int m, int n, int k, const float *times, Address a, int lda,
                      Address b, int ldb, const float *plus, Address c, int ldc) {
    (void)handle;
    return product(4, ta, tb, m, n, k, *times, a, lda, b, ldb, *plus, c, ldc);
}

Result cuGetProcAddress_v2(const char *name, void **place, int version, uint64_t flags, int *told) {
    (void)told;
    *place = version == 12000 && !flags ? dlsym(dlopen(STUB_NAME, RTLD_NOW | RTLD_NOLOAD), name) : NULL;
    return *place ? 0 : NOT_FOUND;
}
