//! The judgement of offers by wishes: latency, cost, score, and budgets.

use std::cmp::Ordering;

use hush_engine::{Bytes, Seconds};
use hush_protocol::wording::Slot;

use super::{
    Budgets, Clients, Goal, MemoryBudget, Offer, OutOfBudget, SendWindow, Wishes, offers::keys_sent,
};

/// The bytes of a server without any table. Tables that are much shorter differ little in their score.
const SERVER_BYTES: u64 = 64 << 20;

/// A budget, with the amount of it that a table needs.
struct BudgetNeed {
    name: &'static str,
    option: &'static str,
    needed: f64,
    limit: f64,
    /// Formats an amount for people.
    text: fn(f64) -> String,
}

impl BudgetNeed {
    fn excess(&self) -> f64 {
        self.needed / self.limit
    }

    fn is_met(&self) -> bool {
        self.needed <= self.limit
    }
}

impl Wishes {
    /// Returns the seconds of a look-up of a client that is ready and was idle: the server's, those of sending with their round
    /// trips, and the look-up's share of what is sent once.
    pub fn latency(&self, offer: &Offer) -> f64 {
        let Clients { lookups, .. } = self.clients;
        let setup = self.network.setup_seconds(offer, keys_sent(lookups));
        self.network.look_up_seconds(offer, SendWindow::Cold) + setup / lookups
    }

    /// Returns the cost of a million look-ups, on a machine of `threads` threads.
    pub fn cost(&self, offer: &Offer, threads: usize) -> f64 {
        let core_hours = threads as f64 / offer.queries_per_second / 3600.0;
        let gigabytes = offer.bytes(self.clients.lookups) / 1e9;
        1e6 * (core_hours * self.prices.core_hour + gigabytes * self.prices.gigabyte)
    }

    /// Returns the goal as a number: less is better.
    pub fn score(&self, offer: &Offer, threads: usize) -> f64 {
        match self.goal {
            Goal::Balance => {
                // Without `setup_bytes`, a hint of gigabytes would win wherever it saves a server as many bytes.
                let kept = [SERVER_BYTES, offer.server_bytes, offer.setup_bytes()];
                // A person waits for the first look-up too: a table is not given away to spare the later ones some round trips.
                let seconds = self.network.first_look_up_seconds(offer) + 2.0 * self.latency(offer);
                seconds.powi(2) * kept.into_iter().map(|bytes| bytes as f64).sum::<f64>()
            }
            Goal::Latency => self.latency(offer),
            Goal::Bytes => offer.bytes(self.clients.lookups),
            Goal::Memory => offer.server_bytes as f64,
            Goal::Cost => self.cost(offer, threads),
        }
    }

    /// Returns the budgets that are set, with the amount that a table with `payload` bytes of values needs of each.
    fn needs(&self, offer: &Offer, payload: u64) -> Vec<BudgetNeed> {
        let Budgets { upload, download, setup, memory, latency, .. } = self.budgets;
        let memory = memory.map(|memory| match memory {
            MemoryBudget::Times(times) => times * payload as f64,
            MemoryBudget::Bytes(bytes) => bytes as f64,
        });
        let of_bytes = |limit: Option<u64>| limit.map(|bytes| bytes as f64);
        let bytes = [
            ("a query", "max-upload", offer.bytes_up, of_bytes(upload)),
            ("an answer", "max-download", offer.bytes_down, of_bytes(download)),
            ("what a client sends and gets once", "max-setup", offer.setup_bytes(), of_bytes(setup)),
            ("a server's memory", "max-memory", offer.server_bytes, memory),
        ];
        let bytes = bytes.into_iter().filter_map(|(name, option, needed, limit)| {
            Some(BudgetNeed {
                name,
                option,
                needed: needed as f64,
                limit: limit?,
                text: |bytes| Bytes(bytes as usize).to_string(),
            })
        });
        let time = latency.map(|limit| BudgetNeed {
            name: "a look-up",
            option: "max-latency",
            needed: self.latency(offer),
            limit,
            text: |seconds| Seconds(seconds).to_string(),
        });
        bytes.chain(time).collect()
    }

    /// Returns whether a table with `payload` bytes of values is within all budgets.
    pub fn are_met(&self, offer: &Offer, payload: u64) -> bool {
        self.needs(offer, payload).iter().all(BudgetNeed::is_met)
    }

    /// Compares two tables by the goal, then by the latency. The better table is less.
    pub fn order(&self, a: &Offer, b: &Offer, threads: usize) -> Ordering {
        let by_goal = self.score(a, threads).total_cmp(&self.score(b, threads));
        by_goal.then(self.latency(a).total_cmp(&self.latency(b)))
    }

    /// Returns the error if none of `offers`, which must not be empty, is within all budgets. It names the budgets that no offer
    /// meets, and the nearest offer.
    pub fn refusal(&self, offers: &[Offer], payload: u64, threads: usize) -> OutOfBudget {
        let excess =
            |offer: &Offer| self.needs(offer, payload).iter().map(BudgetNeed::excess).fold(1.0, f64::max);
        let nearest = offers
            .iter()
            .min_by(|a, b| excess(a).total_cmp(&excess(b)).then(self.order(a, b, threads)))
            .expect("some offers");
        let needs = self.needs(nearest, payload);
        let binding = needs.iter().enumerate().filter_map(|(index, need)| {
            let needed = offers.iter().map(|offer| self.needs(offer, payload)[index].needed);
            let least = needed.fold(f64::INFINITY, f64::min);
            let BudgetNeed { name, option, limit, text, .. } = need;
            (least > *limit).then(|| {
                let option = Slot::Option(option);
                format!("{name} takes at least {}, and {option} allows {}", text(least), text(*limit))
            })
        });
        let binding: Vec<String> = binding.collect();
        let exceeded = needs.iter().filter(|need| !need.is_met()).map(|need| {
            let BudgetNeed { name, option, limit, text, needed } = need;
            format!("{name} of {} ({} allows {})", text(*needed), Slot::Option(option), text(*limit))
        });
        let exceeded: Vec<String> = exceeded.collect();
        let binding = match binding.is_empty() {
            true => "no table is within all budgets at once".to_owned(),
            false => binding.join("; "),
        };
        OutOfBudget { binding, nearest: nearest.options(), exceeded: exceeded.join(", ") }
    }
}
