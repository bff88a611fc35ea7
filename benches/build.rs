//! Tells the program which compiler made it: instruction counts depend on it.

use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let output = Command::new(env::var_os("RUSTC").expect("cargo sets it")).arg("--version").output();
    let version = String::from_utf8(output.expect("the compiler runs").stdout).expect("the version is text");
    // "rustc 1.95.0 (59807616e 2026-04-14)": name and number.
    let version: Vec<&str> = version.split_whitespace().take(2).collect();
    println!("cargo:rustc-env=CUZK_RUSTC={}", version.join(" "));
}
