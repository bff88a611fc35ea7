// Kernels on the host, for tests: blocks one after the other, the threads of a block as coroutines that take turns at
// barriers.
#include <ucontext.h>

#include <functional>
#include <vector>

#include "types.cuh"

#define __global__
#define __device__
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static

struct index {
    unsigned x, y, z;
};
static index threadIdx, blockIdx;

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline int __clz(unsigned x) { return x == 0 ? 32 : __builtin_clz(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const u64 bytes = (u64)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline void atomicMin(u64* at, u64 value) { *at = value < *at ? value : *at; }
static inline unsigned __brev(unsigned x)
{
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; bit++) reversed |= (x >> bit & 1) << (31 - bit);
    return reversed;
}
// Of headers that the kernels here include and do not use.
static inline unsigned __shfl_up_sync(unsigned, unsigned value, int) { return value; }
static inline unsigned atomicAdd(unsigned* at, unsigned value) { return (*at += value) - value; }

struct thread {
    ucontext_t context;
    std::vector<char> stack;
    bool done;
};
static std::vector<thread> threads;
static ucontext_t scheduler;
static std::function<void()> kernel;

static void __syncthreads() { swapcontext(&threads[threadIdx.x].context, &scheduler); }

static void run_thread()
{
    kernel();
    threads[threadIdx.x].done = true;
}

// Every thread runs to its next barrier, in turn, until all are at the end.
static void launch(unsigned blocks, unsigned block_size, std::function<void()> body)
{
    kernel = body;
    threads.resize(block_size);
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        for (thread& t : threads) {
            t.stack.resize(1 << 16);
            t.done = false;
            getcontext(&t.context);
            t.context.uc_stack.ss_sp = t.stack.data();
            t.context.uc_stack.ss_size = t.stack.size();
            t.context.uc_link = &scheduler;
            makecontext(&t.context, run_thread, 0);
        }
        for (bool running = true; running;) {
            running = false;
            for (threadIdx.x = 0; threadIdx.x < block_size; threadIdx.x++) {
                if (threads[threadIdx.x].done) continue;
                swapcontext(&scheduler, &threads[threadIdx.x].context);
                running |= !threads[threadIdx.x].done;
            }
        }
    }
}

#include "ntt.cu"
#include "points.cu"

extern "C" void grid_table(uint4* table, const uint4* low, const uint4* high, u32 low_bits, u32 log_factors,
                           u32 log_direct)
{
    const u32 entries = (1u << log_direct) + (1u << (log_factors - log_direct));
    launch((entries + NTT_THREADS - 1) / NTT_THREADS, NTT_THREADS,
           [=] { ntt_table(table, low, high, low_bits, log_factors, log_direct); });
}
extern "C" void grid_forward(uint4* data, const uint4* table, const ntt_pass* pass, u32 blocks)
{
    launch(blocks, NTT_THREADS, [=] { ntt_forward(data, table, *pass); });
}
extern "C" void grid_inverse(uint4* data, const uint4* table, const ntt_pass* pass, u32 blocks)
{
    launch(blocks, NTT_THREADS, [=] { ntt_inverse(data, table, *pass); });
}

#define GRID_POINTS(G)                                                                                                 \
    extern "C" void grid_points_##G(const uint4* from, uint4* to, u32 len, u32 subgroup, u64* first_fault)             \
    {                                                                                                                  \
        const u32 threads = min(len, POINTS_THREADS), blocks = (len + threads - 1) / threads;                          \
        launch(blocks, threads, [=] { points_convert_##G(from, to, len, 0, 1, first_fault); });                 \
        launch(blocks, threads, [=] { points_check_curve_##G((const char*)to, len, 0, first_fault); });         \
        if (subgroup == 0) return;                                                                                     \
        launch(blocks, threads, [=] { points_check_subgroup_##G((const char*)to, len, 0, first_fault); });      \
    }
GRID_POINTS(g1)
GRID_POINTS(g2)
