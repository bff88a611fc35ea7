//! What is to know of a folder's file system.

use std::{io, path::Path};

use nix::sys::statvfs::statvfs;

/// Bytes that a file in a folder could still grow by, for a user without privileges.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let space = statvfs(folder)?;
    Ok(space.blocks_available().saturating_mul(space.fragment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_room_and_what_is_not_there_has_none() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        assert!(free_bytes(dir.path()).is_ok_and(|bytes| bytes > 0));
        assert!(free_bytes(&dir.path().join("absent")).is_err());
    }
}
