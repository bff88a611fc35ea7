// The ends of a multi-scalar multiplication: sums of groups of points, few enough to be folded by the CPU, and for G2 the
// plain form of msm_accumulate. Written once for both groups.
#define FQ2_FN static __device__ __noinline__ // inlined, the formulas of G2 take the compiler minutes
#include "g1.cuh"
#include "msm.cuh"

// A sum of points from `source` on. Numbers count that have the bit, all if bit is 32; of these the ones from the first-th
// on, up to the end-th.
struct msm_group {
    u32 source;
    u32 first;
    u32 end;
    u32 bit;
};

#define GROUP_THREADS 128

// One block a group: each thread adds up a part in XYZZ coordinates (10 products a point), then the block in a tree.
// Writes the sum in XYZZ coordinates.
template <class G>
FN void group_sum(const char* points, const msm_group* groups, char* sums)
{
    extern __shared__ uint4 shared[];
    xyzz<G>* parts = (xyzz<G>*)shared;
    const msm_group group = groups[blockIdx.x];
    const bool all = group.bit >= 32;
    const u32 low = all ? 0 : (1u << group.bit) - 1;
    xyzz<G> sum;
    set_identity(sum);
    for (u32 first = group.first; first < group.end; first += GROUP_THREADS) { // by whole warps, see warp_any
        const u32 i = first + threadIdx.x;
        const u32 number = all ? i : (i & ~low) << 1 | 1u << group.bit | (i & low); // the i-th that has the bit
        affine<G> p;
        set_identity(p);
        if (i < group.end) point_load(p, points + (u64)(group.source + number) * sizeof(p));
        point_add(sum, p);
    }
    parts[threadIdx.x] = sum;
    for (u32 half = GROUP_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x / 32 * 32 < half) { // by whole warps
            point_add(sum, parts[threadIdx.x + half]);
            if (threadIdx.x < half) parts[threadIdx.x] = sum;
        }
    }
    if (threadIdx.x == 0) point_store(sums + (u64)blockIdx.x * sizeof(sum), sum);
}

extern "C" __global__ void __launch_bounds__(GROUP_THREADS)
    msm_group_sums_g1(const char* points, const msm_group* groups, char* sums)
{
    group_sum<g1>(points, groups, sums);
}

extern "C" __global__ void __launch_bounds__(GROUP_THREADS)
    msm_group_sums_g2(const char* points, const msm_group* groups, char* sums)
{
    group_sum<g2>(points, groups, sums);
}

// What msm_accumulate does, without its scratch: a thread a segment, XYZZ coordinates, the sum made affine at the end.
// Simple, exact, half as fast.
template <class G>
FN void accumulate_plainly(const msm_accumulate_args& a)
{
    const u32 g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= segments_of(a)) return;
    const u32 start = a.starts[g], stride = start & MSM_SECOND_STRIDE ? a.second_stride : a.stride;
    xyzz<G> sum;
    set_identity(sum);
    for (u32 s = 0; s < MSM_MAX_LENGTH; s++) {
        const bool more = g < a.longer[MSM_MAX_LENGTH - s];
        if (!warp_any(more)) break; // additions are by whole warps
        const u32 position = (start & ~MSM_SECOND_STRIDE) + s * stride;
        const u32 id = !more ? MSM_NONE : a.index ? a.index[position] : position;
        affine<G> p;
        set_identity(p);
        if (id != MSM_NONE) point_load(p, a.points + (u64)(id & 0x7fffffff) * sizeof(p));
        p.y = f_cneg(p.y, id >> 31);
        point_add(sum, p);
    }
    affine<G> out;
    make_affine(out, sum);
    point_store(sums_of(a) + (u64)(a.order ? a.order[g] : g) * sizeof(out), out);
}

extern "C" __global__ void __launch_bounds__(128) msm_accumulate_g2(const msm_accumulate_args a) { accumulate_plainly<g2>(a); }

// table[to + i] = 2^doublings * table[from + i], affine: the multiples of a fixed base. 9 products a doubling, and one
// reciprocal.
template <class G>
FN void double_table(char* table, u32 from, u32 to, u32 n, u32 doublings)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    affine<G> p;
    point_load(p, table + (u64)(from + i) * sizeof(p));
    xyzz<G> q;
    set_affine(q, p);
    for (u32 k = 0; k < doublings; k++) point_double(q);
    make_affine(p, q);
    point_store(table + (u64)(to + i) * sizeof(p), p);
}

extern "C" __global__ void __launch_bounds__(128) msm_double_g1(char* table, u32 from, u32 to, u32 n, u32 doublings)
{
    double_table<g1>(table, from, to, n, doublings);
}

extern "C" __global__ void __launch_bounds__(128) msm_double_g2(char* table, u32 from, u32 to, u32 n, u32 doublings)
{
    double_table<g2>(table, from, to, n, doublings);
}

// points[i] = fine[i mod 2^16] + coarse[i div 2^16], affine: many different points from few, for checks and benches at
// sizes that no host could fill. Sums by XYZZ, a reciprocal each.
extern "C" __global__ void __launch_bounds__(128) msm_fill_g1(char* points, u32 n, const char* fine, const char* coarse)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    affine<g1> p, q;
    point_load(p, fine + (u64)(i & 0xffff) * sizeof(p));
    point_load(q, coarse + (u64)(i >> 16) * sizeof(q));
    xyzz<g1> sum;
    set_affine(sum, p);
    point_add(sum, q);
    make_affine(p, sum);
    point_store(points + (u64)i * sizeof(p), p);
}
