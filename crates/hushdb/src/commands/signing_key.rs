//! `hushdb keygen`, and the file that it makes: the key with which a publisher signs tables.

use std::{
    error::Error,
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use clap::Args;
use hush_math::csprng::Csprng;
use hush_protocol::signature::SigningKey;
use zeroize::Zeroizing;

/// Make a key to sign tables with.
#[derive(Args)]
pub(crate) struct KeygenArgs {
    /// File to put the key in, readable by its owner alone. It must not be there yet.
    file: PathBuf,
}

/// Makes the file, and prints the public half for those who trust it.
pub(crate) fn run(args: &KeygenArgs) -> Result<(), Box<dyn Error>> {
    let mut secret = Zeroizing::new([0; 32]);
    Csprng::from_os().fill_bytes(&mut *secret);
    let key = SigningKey::new(&secret);
    let path = args.file.display();
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.file).map_err(|error| {
            format!("cannot make {path}: {error}: choose a file that is not there, in a folder that is")
        })?;
    file.write_all(key.to_text().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    println!("{}", key.public());
    eprintln!(
        "{path} is for `hushdb build --sign`: keep it secret. The line above is for `hushdb get --trust`: publish it."
    );
    Ok(())
}

/// The key in a file.
pub(super) fn read(path: &Path) -> Result<SigningKey, String> {
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
