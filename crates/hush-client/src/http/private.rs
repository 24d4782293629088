//! Files and folders that only their owner can read.
//!
//! On Unix, modes and owners say who can read a file. On Windows, a file has the access list of its folder: the cache in the user's
//! profile is closed to other users, and a folder that a program names is as open as that program made it.

pub(super) use system::{Owner, close, is_open_to_others, new_file, new_folder, sync_folder};

#[cfg(unix)]
mod system {
    use std::{
        fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
        io,
        os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
        path::Path,
    };

    /// The user that owns the files of this process.
    #[derive(Clone, Copy)]
    pub(in crate::http) struct Owner(pub(in crate::http) u32);

    impl Owner {
        /// Returns the owner of new files in a folder: the user of this process.
        pub(in crate::http) fn of_new_files(folder: &Path) -> io::Result<Self> {
            Ok(Self(tempfile::tempfile_in(folder)?.metadata()?.uid()))
        }

        /// Returns whether this user owns the file or folder.
        pub(in crate::http) fn owns(self, metadata: &Metadata) -> bool {
            metadata.uid() == self.0
        }
    }

    /// Returns the options that create a folder, and those above it, for this user alone.
    pub(in crate::http) fn new_folder() -> DirBuilder {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
    }

    /// Returns the options that create a file for this user alone.
    pub(in crate::http) fn new_file() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options
    }

    /// Returns whether other users can read, list or write.
    pub(in crate::http) fn is_open_to_others(metadata: &Metadata) -> bool {
        metadata.mode() & 0o077 != 0
    }

    /// Closes a folder to other users.
    pub(in crate::http) fn close(folder: &Path) -> io::Result<()> {
        fs::set_permissions(folder, Permissions::from_mode(0o700))
    }

    /// Makes the names in a folder survive a loss of power.
    pub(in crate::http) fn sync_folder(folder: &Path) -> io::Result<()> {
        File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()
    }
}

#[cfg(not(unix))]
mod system {
    use std::{
        fs::{DirBuilder, Metadata, OpenOptions},
        io,
        path::Path,
    };

    /// The user that owns the files of this process, which the access lists of folders name.
    #[derive(Clone, Copy)]
    pub(in crate::http) struct Owner;

    impl Owner {
        pub(in crate::http) fn of_new_files(_folder: &Path) -> io::Result<Self> {
            Ok(Self)
        }

        pub(in crate::http) fn owns(self, _metadata: &Metadata) -> bool {
            true
        }
    }

    pub(in crate::http) fn new_folder() -> DirBuilder {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        builder
    }

    pub(in crate::http) fn new_file() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        options
    }

    pub(in crate::http) fn is_open_to_others(_metadata: &Metadata) -> bool {
        false
    }

    pub(in crate::http) fn close(_folder: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(in crate::http) fn sync_folder(_folder: &Path) -> io::Result<()> {
        Ok(())
    }
}
