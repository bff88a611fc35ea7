// Sums of segments of points in affine coordinates, G1: the work horse of the multi-scalar multiplication.
//
// Each segment has one affine accumulator, and step s adds the segment's point number s to it. A lane owns K segments and
// adds to all of them at once, so that one reciprocal serves K additions (Montgomery's trick): a forward pass multiplies
// the differences x2 - x1 up and keeps the products, a backward pass turns them into the reciprocals one by one. An
// addition is 5 products and a square, and a 1/K-th of a reciprocal (35 products). Factors are below 2p, what is kept in
// memory below p. Segments are dealt to the warps in order of length, longest first, so that all finish together; warps
// never wait for each other.
//
// Memory: 148 bytes of scratch a segment (accumulator 96, product 48, point number 4), written and read by its own lane
// only, in planes of 16 bytes a lane. An addition moves about 600 bytes. What the arithmetic reads is copied to shared
// memory ahead of time by cp.async; each lane copies and reads its own, so no barrier is needed.
//
// Exact in every case. A point with x = 0 is the identity (those with x = 0 on the curve have order 3). If the accumulator
// is the identity or has the point's x, the lane adds alone, out of line.
#include "g1.cuh"
#include "msm.cuh"
#include "warp.cuh"

#define WARPS 4
#define BATCH 4 // segments whose first points are loaded, or whose sums are stored, at once
#define PLANE 512u // bytes: 16 a lane
#define FORWARD_STAGE (6 * PLANE)
#define BACKWARD_STAGE (15 * PLANE)
#define RING (2 * BACKWARD_STAGE) // the forward pass uses three stages of six planes of it

FN void copy_gather(u32 to, const void* from) // through L1: neighbouring lanes' sectors are asked for once
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
FN void copy_stream(u32 to, const void* from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
FN void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
FN void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Three planes of a lane as an element.
FN fq planes_load(const char* from)
{
    fq r;
    UNROLL for (int i = 0; i < 3; i++) {
        const uint4 w = *(const uint4*)(from + i * PLANE);
        r.v[4 * i] = w.x, r.v[4 * i + 1] = w.y, r.v[4 * i + 2] = w.z, r.v[4 * i + 3] = w.w;
    }
    return r;
}

FN void planes_store(char* to, const fq& a)
{
    UNROLL for (int i = 0; i < 3; i++) {
        uint4 w;
        w.x = a.v[4 * i], w.y = a.v[4 * i + 1], w.z = a.v[4 * i + 2], w.w = a.v[4 * i + 3];
        *(uint4*)(to + i * PLANE) = w;
    }
}

// -a in 1..=p, or a if not `negate`. A factor need not be below p.
FN fq negate_lazily(const fq& a, bool negate)
{
    fq r;
    r.v[0] = sub_cc(FQ_P[0], a.v[0]);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) r.v[i] = subc_cc(FQ_P[i], a.v[i]);
    r.v[FQ_WORDS - 1] = subc(FQ_P[FQ_WORDS - 1], a.v[FQ_WORDS - 1]);
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = negate ? r.v[i] : a.v[i];
    return r;
}

// accumulator + point where a slope needs no difference: the accumulator is the identity, or both have the same x. Nothing
// if not `needed`.
RARE void add_alone(char* accumulator, const char* point, u32 negative, bool needed)
{
    if (!needed) return;
    affine<g1> q;
    point_load(q, point);
    q.y = fq_cneg(q.y, negative != 0);
    const fq x = planes_load(accumulator), y = planes_load(accumulator + 3 * PLANE);
    if (!fq_is_zero(x) || !fq_is_zero(y)) {
        if (fq_eq(y, q.y)) {
            const fq xx = fq_sqr(x);
            const fq slope = fq_mul(fq_add(fq_double(xx), xx), fq_inv(fq_double(y)));
            q.x = fq_sub(fq_sqr(slope), fq_double(x));
            q.y = fq_sub(fq_mul(slope, fq_sub(x, q.x)), y);
        } else {
            q.x = q.y = fq_zero();
        }
    }
    planes_store(accumulator, q.x);
    planes_store(accumulator + 3 * PLANE, q.y);
}

struct lane_segments {
    const msm_accumulate_args& a;
    u32 first, apart; // segment k of the lane is number first + k * apart

    FN u32 start(u32 k, u32 count) const { return k < count ? a.starts[first + k * apart] : 0; }
    // Those longer than s.
    FN u32 longer(u32 s) const
    {
        const u32 all = s < MSM_MAX_LENGTH ? a.longer[MSM_MAX_LENGTH - s] : 0;
        return all > first ? (all - first - 1) / apart + 1 : 0;
    }
};

template <bool INDEXED>
FN u32 point_at(const msm_accumulate_args& a, u32 start, u32 step)
{
    const u32 stride = start & MSM_SECOND_STRIDE ? a.second_stride : a.stride;
    const u32 position = (start & ~MSM_SECOND_STRIDE) + step * stride;
    return INDEXED ? a.index[position] : position;
}

FN const char* point_address(const msm_accumulate_args& a, u32 id) { return a.points + (u64)(id & 0x7fffffff) * 96; }

template <bool INDEXED>
FN void accumulate(const msm_accumulate_args& a)
{
    extern __shared__ uint4 shared[];
    const u32 lane = threadIdx.x % 32, warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    const lane_segments own = {a, warp * 32 + lane, warps * 32};
    const u32 segments = segments_of(a), per_lane = (segments + own.apart - 1) / own.apart;
    const u32 total = own.first < segments ? (segments - own.first - 1) / own.apart + 1 : 0;

    char* accumulators = a.scratch + (u64)warp * per_lane * (9 * PLANE + 128) + 16 * lane;
    char* products = accumulators + (u64)per_lane * 6 * PLANE;
    u32* ids = (u32*)(products + (u64)per_lane * 3 * PLANE - 16 * lane) + lane;
    char* ring = (char*)shared + threadIdx.x / 32 * RING + 16 * lane;
    const u32 ring_address = (u32)__cvta_generic_to_shared(ring);

    // Step 0: the first points themselves, a few at a time, so that their latencies overlap.
    u32 count = own.longer(0);
    for (u32 k = 0; k < total; k += BATCH) {
        u32 start[BATCH], id[BATCH];
        affine<g1> p[BATCH];
        UNROLL for (u32 i = 0; i < BATCH; i++) start[i] = own.start(k + i, count);
        UNROLL for (u32 i = 0; i < BATCH; i++) id[i] = k + i < count ? point_at<INDEXED>(a, start[i], 0) : MSM_NONE;
        UNROLL for (u32 i = 0; i < BATCH; i++) {
            p[i].x = p[i].y = fq_zero();
            if (id[i] != MSM_NONE) point_load(p[i], point_address(a, id[i]));
        }
        UNROLL for (u32 i = 0; i < BATCH; i++) {
            if (k + i >= total) break;
            planes_store(accumulators + (u64)(k + i) * 6 * PLANE, p[i].x);
            planes_store(accumulators + ((u64)(k + i) * 6 + 3) * PLANE, fq_cneg(p[i].y, id[i] >> 31));
        }
    }

    for (u32 step = 1;; step++) {
        const u32 mine = own.longer(step);
        count = __shfl_sync(0xffffffff, mine, 0); // no lane has more than the first
        if (count == 0) break;
        __threadfence_block();

        fq run = fq_one();
        {
            const auto number = [&](u32 k, u32 start) { return k < mine ? point_at<INDEXED>(a, start, step) : MSM_NONE; };
            const auto fetch = [&](u32 k, u32 id, u32 slot) {
                if (id != MSM_NONE) {
                    const char* point = point_address(a, id);
                    const char* accumulator = accumulators + (u64)k * 6 * PLANE;
                    UNROLL for (int i = 0; i < 3; i++) copy_gather(slot + i * PLANE, point + 16 * i);
                    UNROLL for (int i = 0; i < 3; i++) copy_stream(slot + (3 + i) * PLANE, accumulator + i * PLANE);
                }
                copy_commit();
            };
            u32 id0 = number(0, own.start(0, mine)), id1 = number(1, own.start(1, mine));
            u32 id2 = number(2, own.start(2, mine)), start3 = own.start(3, mine);
            fetch(0, id0, ring_address);
            fetch(1, id1, ring_address + FORWARD_STAGE);
            u32 slot = 0, ahead = 2 * FORWARD_STAGE;
            for (u32 k = 0; k < count; k++) {
                const u32 start4 = own.start(k + 4, mine);
                const u32 id3 = number(k + 3, start3);
                fetch(k + 2, id2, ring_address + ahead);
                copy_wait<2>();
                u32 id = id0;
                bool alone = false;
                if (id != MSM_NONE) {
                    const fq x2 = planes_load(ring + slot), x1 = planes_load(ring + slot + 3 * PLANE);
                    const fq d = fq_sub(x2, x1);
                    if (fq_is_zero(x2)) {
                        id = MSM_NONE;
                    } else if (fq_is_zero(d) || fq_is_zero(x1)) {
                        alone = true;
                    } else {
                        planes_store(products + (u64)k * 3 * PLANE, run);
                        run = fq_mul_lazy(run, d);
                    }
                }
                if (__any_sync(0xffffffff, alone)) { // by whole warps, see warp.cuh
                    add_alone(accumulators + (u64)k * 6 * PLANE, point_address(a, id), id >> 31, alone);
                    if (alone) id = MSM_NONE;
                }
                ids[k * 32] = id;
                id0 = id1, id1 = id2, id2 = id3, start3 = start4;
                slot = slot == 2 * FORWARD_STAGE ? 0 : slot + FORWARD_STAGE;
                ahead = ahead == 2 * FORWARD_STAGE ? 0 : ahead + FORWARD_STAGE;
            }
            copy_wait<0>();
        }
        __syncwarp();
        fq inverse = fq_inv(fq_reduce_once(run));
        __threadfence_block();
        {
            const auto number = [&](u32 k) { return k < count ? ids[k * 32] : MSM_NONE; }; // k < 0 wraps around
            const auto fetch = [&](u32 k, u32 id, u32 slot) {
                if (id != MSM_NONE) {
                    const char* point = point_address(a, id);
                    const char* accumulator = accumulators + (u64)k * 6 * PLANE;
                    const char* product = products + (u64)k * 3 * PLANE;
                    UNROLL for (int i = 0; i < 6; i++) copy_gather(slot + i * PLANE, point + 16 * i);
                    UNROLL for (int i = 0; i < 6; i++) copy_stream(slot + (6 + i) * PLANE, accumulator + i * PLANE);
                    UNROLL for (int i = 0; i < 3; i++) copy_stream(slot + (12 + i) * PLANE, product + i * PLANE);
                }
                copy_commit();
            };
            u32 id0 = number(count - 1), id1 = number(count - 2);
            fetch(count - 1, id0, ring_address);
            u32 slot = 0;
            for (u32 k = count - 1; k != 0xffffffff; k--) {
                const u32 id2 = number(k - 2);
                fetch(k - 1, id1, ring_address + (BACKWARD_STAGE - slot));
                copy_wait<1>();
                if (id0 != MSM_NONE) {
                    const char* in = ring + slot;
                    const fq x1 = planes_load(in + 6 * PLANE), x2 = planes_load(in);
                    const fq d = fq_sub(x2, x1);
                    const fq reciprocal = fq_mul_lazy(inverse, planes_load(in + 12 * PLANE));
                    inverse = fq_mul_lazy(inverse, d);
                    const fq y1 = planes_load(in + 9 * PLANE);
                    const fq y2 = negate_lazily(planes_load(in + 3 * PLANE), id0 >> 31);
                    const fq slope = fq_mul_lazy(fq_sub(y2, y1), reciprocal);
                    const fq x3 = fq_sub(fq_sub(fq_sqr(slope), x1), x2);
                    const fq y3 = fq_sub(fq_reduce_once(fq_mul_lazy(slope, fq_sub(x1, x3))), y1);
                    char* out = accumulators + (u64)k * 6 * PLANE;
                    planes_store(out, x3);
                    planes_store(out + 3 * PLANE, y3);
                }
                id0 = id1, id1 = id2;
                slot = BACKWARD_STAGE - slot;
            }
            copy_wait<0>();
        }
        __syncwarp();
    }

    char* sums = sums_of(a);
    for (u32 k = 0; k < total; k += BATCH) {
        u32 to[BATCH];
        affine<g1> p[BATCH];
        UNROLL for (u32 i = 0; i < BATCH; i++) {
            if (k + i >= total) break;
            const u32 g = own.first + (k + i) * own.apart;
            to[i] = a.order ? a.order[g] : g;
            p[i].x = planes_load(accumulators + (u64)(k + i) * 6 * PLANE);
            p[i].y = planes_load(accumulators + ((u64)(k + i) * 6 + 3) * PLANE);
        }
        UNROLL for (u32 i = 0; i < BATCH; i++) {
            if (k + i < total) point_store(sums + (u64)to[i] * 96, p[i]);
        }
    }
}

// Arguments: see msm.cuh. Shared memory: RING bytes a warp, 61,440 a block.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 2) msm_accumulate_indexed(const msm_accumulate_args a)
{
    accumulate<true>(a);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 2) msm_accumulate_direct(const msm_accumulate_args a)
{
    accumulate<false>(a);
}
