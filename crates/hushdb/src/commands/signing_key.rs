//! The key with which a publisher signs tables: `hushdb keygen`, the key file, and the options of commands that sign.

use std::{
    error::Error,
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use clap::Args;
use hush_build::builder::Signing;
use hush_math::csprng::Csprng;
use hush_protocol::{Name, signature::SigningKey};
use zeroize::Zeroizing;

/// The options for signing a table.
#[derive(Args)]
pub(crate) struct SignArgs {
    /// Sign the table with the key in FILE, from `hushdb keygen`. Clients that trust its public half (`get --trust`)
    /// refuse tables that a server made up, and older tables than they have seen.
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,
    /// Name to sign under, by which clients ask for the table. If not given, the name that the table in the folder is
    /// signed under, or the folder's.
    #[arg(long, value_name = "NAME", requires = "sign")]
    sign_as: Option<Name>,
    /// Number of this publication, greater than all before it under the name. If not given, the seconds since 1970,
    /// or one more than that of the table in the folder.
    #[arg(long, value_name = "N", requires = "sign")]
    serial: Option<u64>,
}

impl SignArgs {
    /// Returns how a table is signed; `None` for a table that is not signed.
    ///
    /// # Errors
    /// The file has no key.
    pub(super) fn signing(&self) -> Result<Option<Signing>, String> {
        self.sign
            .as_ref()
            .map(|path: &PathBuf| {
                Ok(Signing { key: read(path)?, name: self.sign_as.clone(), serial: self.serial })
            })
            .transpose()
    }
}
use crate::report;

/// Make a key to sign tables with.
#[derive(Args)]
pub(crate) struct KeygenArgs {
    /// File for the new key, readable only by its owner. The file must not exist yet.
    file: PathBuf,
}

/// Creates the file, and prints the public half, for those who trust it.
pub(crate) fn run(args: &KeygenArgs) -> Result<(), Box<dyn Error>> {
    let mut secret = Zeroizing::new([0; 32]);
    Csprng::from_os().fill_bytes(&mut *secret);
    let key = SigningKey::new(&secret);
    let path = args.file.display();
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.file).map_err(|error| {
            format!("cannot make {path}: {error}: choose a file that is not there, in a folder that is")
        })?;
    let text = Zeroizing::new(format!("{}\n", *key.to_text()));
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        // Half a key is useless, and would be in the way of the next one.
        let _ = fs::remove_file(&args.file);
        format!("cannot write {path}: {error}")
    })?;
    report::print(&format!("{}\n", key.public()))?;
    say!(
        "{path} is for `hushdb build --sign`: keep it secret. The line above is for `hushdb get --trust`: publish it."
    );
    Ok(())
}

/// Reads the key in a file. Refuses a file that others can read or change.
fn read(path: &Path) -> Result<SigningKey, String> {
    let shown = path.display();
    let failed = |error| format!("cannot read the key in {shown}: {error}: make one with hushdb keygen");
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "others can read or change the key in {shown}: chmod 600 it, or make a new one with hushdb keygen"
        ));
    }
    let text = Zeroizing::new(fs::read_to_string(path).map_err(failed)?);
    text.parse()
        .map_err(|reason| format!("there is no key in {shown} ({reason}): make one with hushdb keygen"))
}
