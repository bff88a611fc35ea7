//! Where the daemon keeps its jobs: the folder of the job store, and its opening.

use std::{path::PathBuf, sync::Arc};

use cuzk_server::store::{
    JobStore,
    durable::{Store, StoreOptions},
};

use crate::{
    config::{self, DamagedStore, StoreKind, StorePath},
    exit::{Exit, Failure},
};

/// Opens the job store of the configuration; `None` if jobs live in memory.
pub fn open(config: &config::Store) -> Result<Option<Arc<dyn JobStore>>, Failure> {
    if config.kind == StoreKind::Memory {
        tracing::warn!("store.kind is \"memory\": a restart loses accepted jobs and finished proofs");
        return Ok(None);
    }
    let folder = folder_of(config).ok_or_else(|| {
        Failure::new(Exit::Usage, "no folder for the job store: neither STATE_DIRECTORY nor a home folder is known")
            .with_hint("set store.path, or store.kind = \"memory\"")
    })?;
    let move_damaged_aside = config.if_damaged == DamagedStore::MoveAside;
    let store = Store::open(&StoreOptions { folder: folder.clone(), move_damaged_aside })?;
    let status = store.status();
    tracing::info!(unfinished = status.resumed, lost = status.lost, "job store in {}", folder.display());
    Ok(Some(Arc::new(store)))
}

/// The folder of the job store on disk, if one is known.
pub fn folder_of(config: &config::Store) -> Option<PathBuf> {
    let state_directory = std::env::var("STATE_DIRECTORY").ok();
    folder(&config.path, state_directory.as_deref(), dirs::state_dir())
}

/// The folder: the one that is named, or the first that the supervisor gives this service, or one of the user's.
fn folder(path: &StorePath, state_directory: Option<&str>, user_state: Option<PathBuf>) -> Option<PathBuf> {
    match path {
        StorePath::Fixed(path) => Some(path.clone()),
        StorePath::Auto => {
            let given = state_directory.and_then(|folders| folders.split(':').find(|folder| !folder.is_empty()));
            given.map(PathBuf::from).or_else(|| user_state.map(|state| state.join("cuzk")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_named_or_the_supervisors_or_the_users() {
        let user = || Some(PathBuf::from("/home/u/.local/state"));
        let auto = |given| folder(&StorePath::Auto, given, user());
        assert_eq!(auto(Some("/var/lib/cuzk:/var/lib/other")), Some("/var/lib/cuzk".into()));
        assert_eq!(auto(Some("")), Some("/home/u/.local/state/cuzk".into()));
        assert_eq!(auto(None), Some("/home/u/.local/state/cuzk".into()));
        assert_eq!(folder(&StorePath::Auto, None, None), None);
        assert_eq!(folder(&StorePath::Fixed("/s".into()), Some("/var/lib/cuzk"), user()), Some("/s".into()));
    }
}
