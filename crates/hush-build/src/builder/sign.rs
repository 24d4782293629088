//! The signature of a table: the name and the serial under which its publisher signs an epoch.

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

/// The options by which a table is signed.
#[derive(Clone, Debug)]
pub struct Signing {
    /// The publisher's key.
    pub key: SigningKey,
    /// The name that is signed; `None` is the signed name of the table in the folder, or the folder's name if there is none.
    pub name: Option<Name>,
    /// A number above that of every table that was published under the name. `None` is the seconds since 1970, or the serial of the
    /// table in the folder plus one, if that is greater.
    pub serial: Option<u64>,
}

impl Signing {
    /// Chooses the name for the table in `folder`, which may not exist yet. A folder that is a link gives the link's name.
    ///
    /// # Errors
    /// [`BuildError::SignedName`] if the folder has no valid name; [`BuildError::Serial`] if clients would refuse the serial.
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

    /// Returns the serial for a table that is published at `time`, in seconds since 1970, in `folder`.
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

/// Gives the descriptor of the table for `folder` its epoch, and signs the epoch if `signing` is given.
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
