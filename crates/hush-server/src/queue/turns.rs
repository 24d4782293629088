//! A queue with turns: each client has its turn, however much another one has queued.

use std::collections::{HashMap, VecDeque, hash_map::Entry};

use crate::access::client::ClientAddress;

/// The waiting jobs of clients. Clients take turns, with one job each. The jobs of one client keep their order.
pub(crate) struct Turns<T> {
    /// The jobs of each client that has any.
    jobs: HashMap<ClientAddress, VecDeque<T>>,
    /// The clients in `jobs`, the next one first.
    order: VecDeque<ClientAddress>,
    len: usize,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { jobs: HashMap::new(), order: VecDeque::new(), len: 0 }
    }
}

impl<T> Turns<T> {
    /// Returns the number of jobs of all clients.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of jobs of one client.
    pub(crate) fn of(&self, client: ClientAddress) -> usize {
        self.jobs.get(&client).map_or(0, VecDeque::len)
    }

    /// Returns the number of jobs that are taken before the next one that `client` adds, if nobody else adds any:
    ///
    /// ```text
    /// own + sum over the others of min(their jobs, own + 1)
    /// ```
    pub(crate) fn ahead_of(&self, client: ClientAddress) -> usize {
        let own = self.of(client);
        let others = self.jobs.iter().filter(|(other, _)| **other != client);
        own + others.map(|(_, jobs)| jobs.len().min(own + 1)).sum::<usize>()
    }

    /// Adds a job behind the others of its client.
    pub(crate) fn push(&mut self, client: ClientAddress, job: T) {
        let jobs = match self.jobs.entry(client) {
            Entry::Occupied(jobs) => jobs.into_mut(),
            Entry::Vacant(place) => {
                self.order.push_back(client);
                place.insert(VecDeque::new())
            }
        };
        jobs.push_back(job);
        self.len += 1;
    }

    /// Takes `count` jobs, or all if there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Vec<T> {
        let mut taken = Vec::with_capacity(count.min(self.len));
        while taken.len() < count
            && let Some(client) = self.order.pop_front()
        {
            let jobs = self.jobs.get_mut(&client).expect("a client in turn has jobs");
            taken.extend(jobs.pop_front());
            if jobs.is_empty() {
                self.jobs.remove(&client);
            } else {
                self.order.push_back(client);
            }
        }
        self.len -= taken.len();
        taken
    }

    /// Drops the jobs for which `keep` is false. Returns how many there were.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) -> usize {
        let before = self.len;
        self.jobs.retain(|_, jobs| {
            jobs.retain(&keep);
            !jobs.is_empty()
        });
        self.order.retain(|client| self.jobs.contains_key(client));
        self.len = self.jobs.values().map(VecDeque::len).sum();
        before - self.len
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(last: u8) -> ClientAddress {
        IpAddr::from([10, 0, 0, last]).into()
    }

    /// Returns a queue of jobs `(client, number)`.
    fn queued(counts: &[(u8, usize)]) -> Turns<(u8, usize)> {
        let mut turns = Turns::default();
        for &(name, count) in counts {
            (0..count).for_each(|number| turns.push(client(name), (name, number)));
        }
        turns
    }

    #[test]
    fn a_single_query_passes_a_long_queue() {
        let mut turns = queued(&[(1, 1000), (2, 1), (3, 2)]);
        assert_eq!(turns.take(4), [(1, 0), (2, 0), (3, 0), (1, 1)]);
        assert_eq!(turns.take(3), [(3, 1), (1, 2), (1, 3)]);
        assert_eq!((turns.len(), turns.of(client(1)), turns.of(client(2))), (1003 - 7, 996, 0));
    }

    #[test]
    fn those_ahead_are_counted_in_turns() {
        let mut turns = queued(&[(1, 100), (2, 1), (3, 2)]);
        assert_eq!([1, 2, 3, 4].map(|name| turns.ahead_of(client(name))), [103, 5, 6, 3]);
        for (name, ahead) in [(4, 3), (2, 5)] {
            let mut copy = queued(&[(1, 100), (2, 1), (3, 2)]);
            copy.push(client(name), (name, 77));
            let at = copy.take(200).iter().position(|&job| job == (name, 77)).unwrap();
            assert!(at <= ahead, "{name}: {at}");
        }
        turns.take(103);
        assert_eq!(turns.ahead_of(client(1)), 0);
    }

    #[test]
    fn all_are_taken_once() {
        let mut turns = queued(&[(1, 3), (2, 1)]);
        turns.push(client(1), (1, 3));
        let mut all = turns.take(100);
        assert_eq!((turns.len(), turns.take(1)), (0, Vec::new()));
        all.sort_unstable();
        assert_eq!(all, [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]);
        turns.push(client(2), (2, 7));
        assert_eq!(turns.take(1), [(2, 7)]);
    }

    #[test]
    fn what_is_not_kept_leaves_no_turn() {
        let mut turns = queued(&[(1, 4), (2, 2), (3, 1)]);
        assert_eq!(turns.retain(|&(name, number)| name != 2 && number != 1), 3);
        assert_eq!(turns.len(), 4);
        assert_eq!(turns.take(9), [(1, 0), (3, 0), (1, 2), (1, 3)]);
    }
}
