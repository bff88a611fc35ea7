//! The two primes of BLS12-381, with z = -0xd201000000010000, in 64-bit limbs from the lowest.

/// q = (z-1)^2 (z^4 - z^2 + 1)/3 + z, of the base field Fq.
pub const Q: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// r = z^4 - z^2 + 1, of the scalar field Fr: the order of both groups.
pub const R: [u64; 4] = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
