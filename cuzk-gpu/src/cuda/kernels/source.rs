//! A kernel module's sources: the files that it includes, and the digest that names its code.

use std::collections::BTreeMap;

use blake2b_simd::Params;

use super::{arch::Arch, list::SOURCES};

/// A program for the compiler: one `.cu` file and what it includes.
#[derive(Clone, Copy, Debug)]
pub struct KernelModule {
    /// Its name. Several modules can have one source and differ in options.
    pub name: &'static str,
    /// Its file.
    pub source: &'static str,
    /// Options for the compiler, such as `-DNAME` or `--ptxas-options=-O1`.
    pub options: &'static [&'static str],
}

/// The texts of a module: its own first, then those of the headers, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts<'a> {
    /// The `.cu` file.
    pub main: &'a str,
    /// The headers that it includes, directly or not.
    pub headers: BTreeMap<&'a str, &'a str>,
}

impl KernelModule {
    /// Its texts.
    ///
    /// # Errors
    /// A file that is included and not embedded.
    pub fn texts(&self) -> Result<Texts<'static>, String> {
        texts(self.source, SOURCES)
    }

    /// Names its texts and options: the same digest means the same code from the same compiler.
    ///
    /// # Errors
    /// As [`Self::texts`].
    pub fn digest(&self) -> Result<String, String> {
        Ok(digest(&self.texts()?, self.options))
    }

    /// The name of the file with its code for an architecture, as shipped.
    ///
    /// # Errors
    /// As [`Self::texts`].
    pub fn file_name(&self, arch: Arch) -> Result<String, String> {
        Ok(format!("{}-{arch}-{}.cubin", self.name, self.digest()?))
    }
}

/// Finds the files that `main` includes in `sources`, and what they include.
fn texts<'a>(main: &str, sources: &'a [(&'a str, &'a str)]) -> Result<Texts<'a>, String> {
    let find = |name: &str| sources.iter().find(|(n, _)| *n == name).copied();
    let (_, text) = find(main).ok_or_else(|| format!("{main} is not among the embedded kernel sources"))?;
    let mut headers = BTreeMap::new();
    let mut pending: Vec<_> = includes(text).map(|header| (main, header)).collect();
    while let Some((from, header)) = pending.pop() {
        let (name, text) = find(header).ok_or_else(|| format!("{from} includes {header}, which is not embedded"))?;
        if headers.insert(name, text).is_none() {
            pending.extend(includes(text).map(|header| (name, header)));
        }
    }
    Ok(Texts { main: text, headers })
}

/// The names in `#include "name"` lines. Those in angle brackets are of host compilers, and not for kernels.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        rest.trim_start().strip_prefix('"')?.split('"').next()
    })
}

fn digest(texts: &Texts<'_>, options: &[&str]) -> String {
    let mut state = Params::new().hash_length(16).personal(b"cuzk kernel v1").to_state();
    let mut field = |text: &str| {
        state.update(&(text.len() as u64).to_le_bytes());
        state.update(text.as_bytes());
    };
    field(texts.main);
    for (name, text) in &texts.headers {
        field(name);
        field(text);
    }
    options.iter().for_each(|option| field(option));
    state.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::kernels::list::MODULES;

    const SOURCES: &[(&str, &str)] = &[
        ("a.cu", "#include \"b.cuh\"\n  # include \"c.cuh\"\nint x;"),
        ("b.cuh", "#pragma once\n#include \"c.cuh\"\n#include <cmath>\n// #include \"not this\""),
        ("c.cuh", "#include \"b.cuh\""),
        ("d.cu", "#include \"missing.cuh\""),
    ];

    #[test]
    fn headers_are_found_through_headers() {
        let found = texts("a.cu", SOURCES).expect("all are there");
        assert_eq!(found.headers.keys().copied().collect::<Vec<_>>(), ["b.cuh", "c.cuh"]);
        let error = texts("d.cu", SOURCES).expect_err("a header is missing");
        assert!(error.contains("d.cu") && error.contains("missing.cuh"), "{error}");
    }

    #[test]
    fn a_change_anywhere_is_another_digest() {
        let base = texts("a.cu", SOURCES).expect("all are there");
        let mut other = base.clone();
        other.headers.insert("c.cuh", "#include \"b.cuh\" ");
        let digests = [digest(&base, &[]), digest(&base, &["-DX"]), digest(&other, &[]), digest(&base, &["-D", "X"])];
        for (i, a) in digests.iter().enumerate() {
            assert!(digests[i + 1..].iter().all(|b| a != b));
        }
        assert_eq!(digests[0].len(), 32);
    }

    #[test]
    fn every_module_is_whole() {
        for module in MODULES {
            let name = module.file_name(Arch::new(9, 0)).expect("its headers are embedded");
            assert!(name.starts_with(module.name) && name.contains("sm_90"), "{name}");
        }
    }
}
