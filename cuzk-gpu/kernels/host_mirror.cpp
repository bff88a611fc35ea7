// The kernels' arithmetic for the host: the same headers, compiled by the host's compiler in a test.
#include "field_ops.cuh"

#define OP(name, words_a, words_b, words_out, body)                                                \
    extern "C" void check_##name(const u32* a, const u32* b, u32* out, u32 n)                      \
    {                                                                                              \
        for (u32 i = 0; i < n; i++, a += words_a, b += words_b, out += words_out) body;            \
    }
FIELD_OPS(OP)
