//! The signature of a table: under which name and serial its publisher signs an epoch.

use std::{
    path::{self, Path},
    time::SystemTime,
};

use hush_protocol::{
    Name,
    descriptor::Descriptor,
    signature::{Signature, SigningKey},
};
use hush_store::snapshot::{Snapshot, Verify};

use super::BuildError;

/// How tables are signed.
#[derive(Clone, Debug)]
pub struct Signing {
    /// The publisher's key.
    pub key: SigningKey,
    /// The name that is signed: the one that the table in the folder is signed under, or the folder's, if not given.
    pub name: Option<Name>,
    /// A number above that of every table that was published under the name. If not given, the seconds since 1970, or one more than
    /// the serial of the table in the folder if that is greater.
    pub serial: Option<u64>,
}

impl Signing {
    /// Chooses the name for the table in `folder`, which may not be there yet. A folder that is a link gives the link's name.
    ///
    /// # Errors
    /// [`BuildError::SignedName`], [`BuildError::Serial`]: clients would refuse the table.
    pub(crate) fn settled(self, folder: &Path) -> Result<Self, BuildError> {
        let name = match self.name.or_else(|| published(folder).map(|signature| signature.name)) {
            Some(name) => name,
            None => {
                let absolute = path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
                Name::last_of(&absolute).map_err(|source| BuildError::SignedName { source })?
            }
        };
        let settled = Self { name: Some(name.clone()), ..self };
        settled.serial(&name, folder, 0).map(|_| settled)
    }

    /// Returns the serial for what is published at `time` in `folder`.
    fn serial(&self, name: &Name, folder: &Path, time: u64) -> Result<u64, BuildError> {
        let is_same =
            |signature: &Signature| signature.publisher == self.key.public() && signature.name == *name;
        let Some(previous) = published(folder).filter(is_same).map(|signature| signature.serial) else {
            return Ok(self.serial.unwrap_or(time));
        };
        let serial = self.serial.unwrap_or_else(|| time.max(previous.saturating_add(1)));
        if serial <= previous {
            return Err(BuildError::Serial { name: name.clone(), serial, previous });
        }
        Ok(serial)
    }
}

/// Returns the signature of the table in a folder, if there is one.
fn published(folder: &Path) -> Option<Signature> {
    Snapshot::open(folder, Verify::Header).ok()?.header().descriptor.signature.clone()
}

/// Gives the descriptor of a table that is to be in `folder` its epoch, and signs it if it is to be signed.
pub(super) fn seal(
    descriptor: &mut Descriptor,
    signing: Option<&Signing>,
    folder: &Path,
) -> Result<(), BuildError> {
    descriptor.seal();
    if let Some(signing) = signing {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let signing = signing.clone().settled(folder)?;
        if let Some(name) = &signing.name {
            let serial = signing.serial(name, folder, time)?;
            descriptor.signature = Some(signing.key.sign(&descriptor.epoch, name, serial, time));
        }
    }
    Ok(descriptor.check()?)
}
