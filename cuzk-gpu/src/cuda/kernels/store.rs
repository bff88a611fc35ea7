//! Compiled kernels on disk: a folder that came with the program, and one where this machine keeps what it compiled.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use blake2b_simd::Params;

use super::{
    arch::Arch,
    nvrtc::{Compiled, Nvrtc},
    source::KernelModule,
};
use crate::cuda::error::CudaError;

/// Where compiled kernels come from.
#[derive(Debug, Default)]
pub struct Kernels {
    shipped: Option<PathBuf>,
    cache: Option<PathBuf>,
    nvrtc: OnceLock<Nvrtc>,
}

/// Names a folder with the output of `cuzk-daemon kernels build`.
pub const VARIABLE: &str = "CUZK_KERNELS";

impl Kernels {
    /// Takes code from `shipped` if it is there, else from `cache`, where what is compiled on first use is kept.
    pub fn new(shipped: Option<PathBuf>, cache: Option<PathBuf>) -> Self {
        Self { shipped, cache, nvrtc: OnceLock::new() }
    }

    /// As the environment says: the folder in [`VARIABLE`], and `cuzk/kernels` in the user's cache folder.
    pub fn from_environment() -> Self {
        Self::new(std::env::var_os(VARIABLE).map(PathBuf::from), dirs::cache_dir().map(|d| d.join("cuzk/kernels")))
    }

    /// The code of a module for a device of architecture `arch`.
    ///
    /// # Errors
    /// It is not on disk, and there is no NVRTC or it does not compile.
    pub fn cubin(&self, module: &KernelModule, arch: Arch) -> Result<Vec<u8>, CudaError> {
        if let Some(cubin) = self.shipped(module, arch)? {
            return Ok(cubin);
        }
        let nvrtc = match self.nvrtc() {
            Ok(nvrtc) => nvrtc,
            Err(error) => return self.of_any_compiler(module, arch)?.ok_or(error),
        };
        let (major, minor) = nvrtc.version();
        let path = match &self.cache {
            Some(folder) => folder.join(format!("nvrtc-{major}.{minor}")).join(file_name(module, arch)?),
            None => return Ok(nvrtc.compile(module, arch)?.cubin),
        };
        if let Some(cubin) = read(&path) {
            return Ok(cubin);
        }
        tracing::info!("compiling kernel module {} for {arch}", module.name);
        let Compiled { cubin, .. } = nvrtc.compile(module, arch)?;
        // A cache that cannot be written costs time on the next start, and nothing else.
        if let Err(error) = write(&path, &cubin) {
            tracing::warn!("{error}");
        }
        Ok(cubin)
    }

    /// Whether the code of a module is here, so that no compiler is needed.
    pub fn is_here(&self, module: &KernelModule, arch: Arch) -> bool {
        let here = |found: Result<Option<Vec<u8>>, CudaError>| found.is_ok_and(|cubin| cubin.is_some());
        here(self.shipped(module, arch)) || here(self.of_any_compiler(module, arch))
    }

    fn shipped(&self, module: &KernelModule, arch: Arch) -> Result<Option<Vec<u8>>, CudaError> {
        let Some(folder) = &self.shipped else { return Ok(None) };
        for arch in arch.runs() {
            if let Some(cubin) = read(&folder.join(file_name(module, arch)?)) {
                return Ok(Some(cubin));
            }
        }
        Ok(None)
    }

    fn nvrtc(&self) -> Result<&Nvrtc, CudaError> {
        if let Some(nvrtc) = self.nvrtc.get() {
            return Ok(nvrtc);
        }
        let nvrtc = Nvrtc::load()?;
        Ok(self.nvrtc.get_or_init(|| nvrtc))
    }

    /// From the cache, whatever compiler made it: better than nothing where there is no compiler any more.
    fn of_any_compiler(&self, module: &KernelModule, arch: Arch) -> Result<Option<Vec<u8>>, CudaError> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let name = file_name(module, arch)?;
        let folders = fs::read_dir(cache).into_iter().flatten().flatten();
        let mut paths: Vec<_> = folders.map(|folder| folder.path().join(&name)).collect();
        paths.sort();
        Ok(paths.iter().rev().find_map(|path| read(path)))
    }
}

/// Writes a module's code into a folder, under the name by which [`Kernels`] finds it there. Returns the path.
///
/// # Errors
/// [`CudaError::File`].
pub fn ship(folder: &Path, module: &KernelModule, arch: Arch, cubin: &[u8]) -> Result<PathBuf, CudaError> {
    let path = folder.join(file_name(module, arch)?);
    write(&path, cubin)?;
    Ok(path)
}

fn file_name(module: &KernelModule, arch: Arch) -> Result<String, CudaError> {
    module.file_name(arch).map_err(|log| CudaError::Compile { module: module.name.to_owned(), arch, log })
}

/// After the code comes a mark and a digest; readers of ELF files do not look there.
const MARK: &[u8; 8] = b"cuzkcubn";
const DIGEST: usize = 32;

/// The code in a file, if the file is whole.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!("cannot read {}: {error}", path.display());
            return None;
        }
    };
    let whole = bytes.len().checked_sub(MARK.len() + DIGEST).is_some_and(|len| {
        let (cubin, trailer) = bytes.split_at(len);
        trailer == self::trailer(cubin)
    });
    if !whole {
        tracing::warn!("{} is damaged, and made again", path.display());
        return None;
    }
    bytes.truncate(bytes.len() - MARK.len() - DIGEST);
    Some(bytes)
}

/// Writes a file under another name first, so that no reader sees half of it.
fn write(path: &Path, cubin: &[u8]) -> Result<(), CudaError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(cubin)?;
        file.write_all(&trailer(cubin))?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)
    };
    match write() {
        Ok(_) => Ok(()),
        Err(error) => Err(CudaError::File { doing: "write", path: path.to_owned(), error }),
    }
}

fn trailer(cubin: &[u8]) -> Vec<u8> {
    let digest = Params::new().hash_length(DIGEST).hash(cubin);
    [MARK.as_slice(), digest.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::kernels::list::MODULES;

    #[test]
    fn what_is_shipped_is_found_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (module, arch) = (&MODULES[0], Arch::new(8, 6));
        let path = ship(folder.path(), module, arch, b"code").expect("writable");
        let kernels = Kernels::new(Some(folder.path().to_owned()), None);
        assert_eq!(kernels.cubin(module, arch).expect("just written"), b"code");
        // A later chip of the family runs it too.
        assert_eq!(kernels.cubin(module, Arch::new(8, 9)).expect("the family's"), b"code");
        assert!(kernels.is_here(module, Arch::new(8, 9)) && !kernels.is_here(module, Arch::new(9, 0)));

        let whole = fs::read(&path).expect("just written");
        for at in [0, 3, 4, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).expect("writable");
            assert_eq!(read(&path), None, "byte {at}");
        }
        for len in [0, 3, whole.len() - 1] {
            fs::write(&path, &whole[..len]).expect("writable");
            assert_eq!(read(&path), None, "{len} bytes");
        }
    }

    #[test]
    fn without_a_compiler_any_cached_code_will_do() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (module, arch) = (&MODULES[0], Arch::new(9, 0));
        let kernels = Kernels::new(None, Some(folder.path().to_owned()));
        assert_eq!(kernels.of_any_compiler(module, arch).expect("readable"), None);
        ship(&folder.path().join("nvrtc-12.9"), module, arch, b"old").expect("writable");
        ship(&folder.path().join("nvrtc-13.0"), module, arch, b"new").expect("writable");
        assert_eq!(kernels.of_any_compiler(module, arch).expect("readable").as_deref(), Some(&b"new"[..]));
        assert!(kernels.is_here(module, arch));
    }
}
