//! The embedded sources, and the modules made from them.

use super::source::KernelModule;
use crate::cuda::error::CudaError;

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        /// Every file of `kernels/` that modules may include, with its text. A test compares it with the folder.
        pub const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../kernels/", $name)))),*];
    };
}

embedded!(
    "block.cuh",
    "carry.cuh",
    "field_bench.cu",
    "field_bench_hybrid.cu",
    "field_check.cu",
    "field_ops.cuh",
    "fq.cuh",
    "fq2.cuh",
    "fq2_bench_hybrid.cu",
    "fq2_hybrid.cuh",
    "fq_hybrid.cuh",
    "fq_inv.cuh",
    "fr.cuh",
    "fr_bench.cu",
    "fr_bench_hybrid.cu",
    "fr_hybrid.cuh",
    "g1.cuh",
    "g1_batch.cuh",
    "g1_batch_bench.cu",
    "g1_batch_form.cuh",
    "g1_batch_hybrid.cuh",
    "g1_batch_integer.cuh",
    "g1_bench.cu",
    "g1_bench_hybrid.cu",
    "g1_hybrid.cuh",
    "g2_bench.cu",
    "hybrid.cuh",
    "hybrid_words.cuh",
    "msm.cuh",
    "msm_accumulate.cu",
    "msm_digits.cu",
    "msm_segments.cu",
    "msm_select.cu",
    "msm_sums.cu",
    "ntt.cu",
    "ntt.cuh",
    "planes.cu",
    "planes.cuh",
    "points.cu",
    "probe.cu",
    "sort.cu",
    "sort.cuh",
    "spmv.cu",
    "types.cuh",
    "warp.cuh",
    "xyzz_bench.cuh",
);

/// Every module: a source, and the options that it is compiled with.
pub const MODULES: &[KernelModule] = &[
    KernelModule { name: "field_bench", source: "field_bench.cu", options: &[] },
    KernelModule { name: "field_bench_hybrid", source: "field_bench_hybrid.cu", options: &["--ptxas-options=-O1"] },
    KernelModule { name: "field_check", source: "field_check.cu", options: &[] },
    KernelModule { name: "fq2_bench_hybrid", source: "fq2_bench_hybrid.cu", options: &[] },
    KernelModule { name: "g1_batch_bench", source: "g1_batch_bench.cu", options: &["--ptxas-options=-O1"] },
    KernelModule { name: "g1_batch_bench_integer", source: "g1_batch_bench.cu", options: &["-DFQ_INTEGER"] },
    KernelModule { name: "g1_bench", source: "g1_bench.cu", options: &[] },
    KernelModule { name: "g1_bench_hybrid", source: "g1_bench_hybrid.cu", options: &["--ptxas-options=-O1"] },
    KernelModule { name: "g2_bench", source: "g2_bench.cu", options: &[] },
    KernelModule { name: "msm_accumulate", source: "msm_accumulate.cu", options: &[] },
    KernelModule { name: "msm_digits", source: "msm_digits.cu", options: &[] },
    KernelModule { name: "msm_segments", source: "msm_segments.cu", options: &[] },
    KernelModule { name: "msm_select", source: "msm_select.cu", options: &[] },
    KernelModule { name: "msm_sums", source: "msm_sums.cu", options: &[] },
    KernelModule { name: "fr_bench", source: "fr_bench.cu", options: &[] },
    KernelModule { name: "fr_bench_hybrid", source: "fr_bench_hybrid.cu", options: &["--ptxas-options=-O1"] },
    KernelModule { name: "ntt", source: "ntt.cu", options: &["--ptxas-options=-O1"] },
    KernelModule { name: "ntt_two_levels", source: "ntt.cu", options: &["--ptxas-options=-O1", "-DNTT_TWO_LEVELS"] },
    KernelModule { name: "planes", source: "planes.cu", options: &[] },
    KernelModule { name: "points", source: "points.cu", options: &[] },
    KernelModule { name: "probe", source: "probe.cu", options: &[] },
    KernelModule { name: "sort", source: "sort.cu", options: &[] },
    KernelModule { name: "spmv", source: "spmv.cu", options: &[] },
];

/// Bytes that a kernel may spill (stores and loads of registers that did not fit, as the compiler counts them, those of
/// called functions included), where that is no loss. All others must not spill.
pub const SPILL_BOUNDS: &[(&str, u32)] = &[
    // In the integer form alone, most of it in the exact addition that is called for special points: 3.76 G additions/s.
    ("bench_g1_batch", 1100),
    // In the exact addition, which a chain of 2^24 additions calls a few times.
    ("bench_g1_xyzz", 50),
    // 25 of the 5660 instructions of an addition; the rest is in the exact addition.
    ("bench_g1_xyzz_hybrid", 1500),
    // Around called products of Fq2, as in msm_accumulate_g2.
    ("bench_g2_xyzz", 4096),
    // A check's time does not count.
    ("check_g1_add", 150),
    ("check_g1_add_batch_hybrid", 600),
    ("check_g1_add_batch_integer", 600),
    ("check_g1_add_hybrid", 800),
    ("check_g1_add_mixed", 10),
    ("check_g2_add", 3000),
    ("check_g2_add_mixed", 3300),
    // Around called products of Fq2, each some hundred instructions: b_g2 of a 2 KiB proof takes 9.8 ms with these spills,
    // 9.9 before additions were called by whole warps, without them (H200).
    ("msm_accumulate_g2", 2600),
    ("msm_group_sums_g2", 4850),
    // The last few hundred sums: 0.3 ms with or without.
    ("msm_group_sums_g1", 180),
    // One register: 46 to 47 G pairs/s on an H200.
    ("sort_pass", 8),
];

/// The module of this name.
///
/// # Errors
/// [`CudaError::NoModule`].
pub fn module(name: &str) -> Result<&'static KernelModule, CudaError> {
    MODULES.iter().find(|m| m.name == name).ok_or_else(|| CudaError::NoModule(name.to_owned()))
}

/// How many bytes a kernel may spill.
pub fn spill_bound(kernel: &str) -> u32 {
    SPILL_BOUNDS.iter().find(|(name, _)| *name == kernel).map_or(0, |(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn the_list_is_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let files: BTreeSet<_> = fs::read_dir(folder)
            .expect("the folder is part of the sources")
            .map(|entry| entry.expect("readable").file_name().into_string().expect("plain names"))
            .filter(|name| name.ends_with(".cu") || name.ends_with(".cuh"))
            .collect();
        let listed: BTreeSet<_> = SOURCES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn modules_have_sources_and_sources_have_modules() {
        let sources = MODULES.iter().map(|m| m.source).collect::<BTreeSet<_>>();
        let files = SOURCES.iter().map(|(name, _)| *name).filter(|n| n.ends_with(".cu")).collect::<BTreeSet<_>>();
        assert_eq!(sources, files);
        let names: BTreeSet<_> = MODULES.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), MODULES.len(), "names are unique");
    }
}
