//! Kernel sources, and the way from them to code for a device.
//!
//! * [`list`]: the embedded sources and the modules made from them;
//! * [`source`]: which files a module includes, and the digest that names its code;
//! * [`arch`], the architectures;
//! * [`nvrtc`]: NVIDIA's run-time compiler, loaded while the program runs;
//! * [`report`]: registers and spills, as the compiler reports them;
//! * [`build`]: all modules for given architectures, ahead of time;
//! * [`store`]: compiled code on disk: shipped with the program, or made on first use and kept.

pub mod arch;
pub mod build;
pub mod list;
pub mod nvrtc;
pub mod report;
pub mod source;
pub mod store;

pub use self::{arch::Arch, store::Kernels};
