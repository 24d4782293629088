//! The clients that uploaded keys, so that no client takes the room of all. The list is in memory only: no address is ever
//! written down.

use std::collections::{HashMap, hash_map::Entry};

use super::store::KeyId;
use crate::access::client::ClientAddress;

/// The keys in the store that were uploaded since the server started, by client.
#[derive(Default)]
pub(super) struct Uploaders {
    uploads: HashMap<KeyId, (ClientAddress, u64)>,
    by_client: HashMap<ClientAddress, ClientUploads>,
}

/// The uploads of one client.
#[derive(Default)]
struct ClientUploads {
    keys: Vec<KeyId>,
    bytes: u64,
}

impl Uploaders {
    /// Returns the keys of a client, and the bytes that they count.
    pub(super) fn of(&self, client: ClientAddress) -> (&[KeyId], u64) {
        self.by_client.get(&client).map_or((&[], 0), |uploads| (&uploads.keys, uploads.bytes))
    }

    /// Notes an upload that counts `bytes`. A repeated upload changes nothing.
    pub(super) fn add(&mut self, client: ClientAddress, id: KeyId, bytes: u64) {
        if let Entry::Vacant(upload) = self.uploads.entry(id) {
            upload.insert((client, bytes));
            let uploads = self.by_client.entry(client).or_default();
            uploads.keys.push(id);
            uploads.bytes += bytes;
        }
    }

    /// Forgets keys that are not in the store any more.
    pub(super) fn remove(&mut self, ids: &[KeyId]) {
        for id in ids {
            let Some((client, bytes)) = self.uploads.remove(id) else { continue };
            let Entry::Occupied(mut uploads) = self.by_client.entry(client) else { continue };
            uploads.get_mut().keys.retain(|key| key != id);
            uploads.get_mut().bytes -= bytes;
            if uploads.get().keys.is_empty() {
                uploads.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(last: u8) -> ClientAddress {
        IpAddr::from([10, 0, 0, last]).into()
    }

    #[test]
    fn what_goes_counts_no_more() {
        let mut uploaders = Uploaders::default();
        for (last, id, bytes) in [(1, 1, 100), (1, 2, 50), (2, 3, 7), (2, 1, 100)] {
            uploaders.add(client(last), [id; 32], bytes);
        }
        assert_eq!(uploaders.of(client(1)), (&[[1; 32], [2; 32]][..], 150));
        assert_eq!(uploaders.of(client(2)), (&[[3; 32]][..], 7));
        uploaders.remove(&[[1; 32], [3; 32], [9; 32]]);
        assert_eq!(uploaders.of(client(1)), (&[[2; 32]][..], 50));
        assert_eq!(uploaders.of(client(2)), (&[][..], 0));
        assert_eq!((uploaders.uploads.len(), uploaders.by_client.len()), (1, 1));
    }
}
