//! The binary; the program is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuzk_daemon::main(std::env::args_os())
}
