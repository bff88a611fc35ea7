// Chains of dependent operations of Fr in registers: what the arithmetic alone can do. A thread does `steps` of them.
#include "fr.cuh"

struct fr_chain {
    fr a[4];
};

#define FR_CHAIN(name, body)                                                                                           \
    extern "C" __global__ void __launch_bounds__(128) name(fr_chain* chains, u32 steps)                                \
    {                                                                                                                  \
        fr_chain* const mine = chains + blockIdx.x * 128 + threadIdx.x;                                                \
        fr x = mine->a[0], y = mine->a[1];                                                                             \
        const fr_constant c = {mine->a[2], mine->a[3]};                                                                \
        ROLLED for (u32 i = 0; i < steps; i++) { body }                                                                \
        mine->a[0] = x;                                                                                                \
        mine->a[1] = y;                                                                                                \
    }

// x y, Montgomery's, canonical.
FR_CHAIN(fr_bench_products, x = fr_mul(x, y);)
// The same, not brought below r: a product of a canonical number by any other.
FR_CHAIN(fr_bench_loose_products, x = fr_mul_loose(y, x);)
// x c, of the form that transforms use.
FR_CHAIN(fr_bench_constant_products, x = fr_mul_constant(x, c);)
// (x, y) -> (x + c y, x - c y), a butterfly of a forward transform.
FR_CHAIN(fr_bench_forward_butterflies, const fr p = fr_mul_constant(y, c);
         y = fr_sub_loose(x, p); x = fr_add_loose(x, p);)
// (x, y) -> (x + y, c (y - x)), a butterfly of an inverse one.
FR_CHAIN(fr_bench_inverse_butterflies, const fr d = fr_sub_loose(y, x);
         x = fr_add_exact(x, y); y = fr_mul_constant(d, c);)
