//! The choice of a table: makes offers from lengths, and chooses the one that is built.

use hush_engine::{Bytes, Progress, Silent};
use hush_store::snapshot::Choice;

use super::{Linkable, Machine, Offer, Records, Wishes, offers::plans};
use crate::builder::{BuildError, BuildOptions, Lengths, Plan, Tiers};

/// Returns every table that the records could have, within the choice that `options` leave and the budgets of `wishes`. The best
/// is first.
///
/// # Errors
/// [`BuildError::OutOfBudget`] if no table is within the budgets; other errors if there is no table at all.
pub fn offers(
    records: &Records,
    options: &BuildOptions,
    wishes: &Wishes,
    machine: &Machine,
    progress: &dyn Progress,
) -> Result<Vec<Offer>, BuildError> {
    let ranked = ranked(records.lengths(), records.by_key(), options, wishes, machine, progress)?;
    Ok(ranked.into_iter().map(|(offer, _)| offer).collect())
}

/// Returns the plan of the best table for a build, with the reasons. If `options` name a protocol and have no wishes, returns the
/// plan of that protocol.
///
/// # Errors
/// [`BuildError`] if there is no such table.
pub(crate) fn choose(
    lengths: &Lengths,
    by_key: bool,
    options: &BuildOptions,
    progress: &dyn Progress,
) -> Result<Plan, BuildError> {
    if options.is_settled() {
        return Plan::of_protocol(lengths, by_key, options);
    }
    let wishes = &options.wishes.unwrap_or_default();
    let machine = options.machine.as_deref().unwrap_or(Machine::reference());
    let mut ranked = ranked(lengths, by_key, options, wishes, machine, progress)?.into_iter();
    let (best, mut plan) = ranked.next().expect("some are within the budgets");
    // A table of another protocol is more informative than the same protocol with other columns.
    let next = ranked.map(|(offer, _)| offer).find(|offer| offer.protocol != best.protocol);
    plan.choice = Some(Choice {
        goal: wishes.goal.to_string(),
        machine: machine.name.clone(),
        chosen: described(&best, wishes),
        next: next.map(|next| format!("{}: {}", next.protocol, described(&next, wishes))),
    });
    Ok(plan)
}

/// The bytes of a leaf's fence that clients download: what the keys of a large table differ in, compressed.
const FENCE_BYTES: u64 = 6;

/// Returns the size of leaves, of `sizes` (a number of leaves and the bytes of one), whose best table suits `options` best. Returns
/// `None` if there is no size.
///
/// # Errors
/// The error of the last size, if there is no table of any.
pub(crate) fn best_leaf(
    sizes: Vec<(usize, usize)>,
    options: &BuildOptions,
) -> Result<Option<usize>, BuildError> {
    let wishes = &options.wishes.unwrap_or_default();
    let machine = options.machine.as_deref().unwrap_or(Machine::reference());
    let mut best: Option<(f64, usize)> = None;
    let mut failed = None;
    for (leaves, leaf_bytes) in sizes {
        let lengths = Lengths::counted([(leaf_bytes, leaves)]);
        let changes = options.changes.map(|room| room.at_most(leaves));
        let options = BuildOptions { tiers: Tiers::AtMost(1), changes, ..options.clone() };
        match ranked(&lengths, false, &options, wishes, machine, &Silent) {
            Ok(ranked) => {
                let mut offer = ranked.into_iter().next().expect("some are within the budgets").0;
                offer.setup_bytes_down += FENCE_BYTES * leaves as u64;
                let score = wishes.score(&offer, machine.threads);
                if best.is_none_or(|(least, _)| score < least) {
                    best = Some((score, leaf_bytes));
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    match (best, failed) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best.map(|(_, leaf_bytes)| leaf_bytes)),
    }
}

/// Returns the tables within the budgets, the best first. There is at least one.
fn ranked(
    lengths: &Lengths,
    by_key: bool,
    options: &BuildOptions,
    wishes: &Wishes,
    machine: &Machine,
    progress: &dyn Progress,
) -> Result<Vec<(Offer, Plan)>, BuildError> {
    let payload = lengths.payload() as u64;
    let all = plans(lengths, by_key, options, wishes.budgets.linkable, progress)?
        .into_iter()
        .map(|plan: Plan| (Offer::new(&plan.params, &plan.ends, machine, wishes.clients), plan));
    let (mut met, exceeding): (Vec<_>, Vec<_>) = all.partition(|(offer, _)| wishes.are_met(offer, payload));
    if met.is_empty() {
        let exceeding: Vec<Offer> = exceeding.into_iter().map(|(offer, _)| offer).collect();
        return Err(wishes.refusal(&exceeding, payload, machine.threads).into());
    }
    met.sort_by(|(a, _), (b, _)| wishes.order(a, b, machine.threads));
    Ok(met)
}

/// Returns a line with the facts of a table that count for the choice.
fn described(offer: &Offer, wishes: &Wishes) -> String {
    let bytes = |bytes: u64| Bytes(bytes as usize);
    let mut text = format!(
        "{:.0} ms a look-up in {} flights at {} ({:.1} ms of them the server's), {} up, {} down",
        1e3 * wishes.latency(offer),
        wishes.network.look_up_flights(offer),
        wishes.network,
        1e3 * offer.seconds,
        bytes(offer.bytes_up),
        bytes(offer.bytes_down),
    );
    if offer.setup_bytes() > 0 {
        text += &format!(", {} once", bytes(offer.setup_bytes()));
    }
    text += &format!(", {} on the server", bytes(offer.server_bytes));
    if offer.linkable != Linkable::Nothing {
        text += "; keys link the look-ups of a client";
    }
    text
}

#[cfg(test)]
mod tests {
    use hush_protocol::Protocol;

    use super::*;
    use crate::planner::{Budgets, Clients, Goal, MemoryBudget};

    fn records(count: usize, size: usize) -> Records {
        Records::new([(size, count)], true).unwrap()
    }

    fn chosen(count: usize, size: usize, wishes: Wishes) -> Result<Plan, BuildError> {
        let options = BuildOptions { wishes: Some(wishes), ..BuildOptions::default() };
        choose(records(count, size).lengths(), true, &options, &Silent)
    }

    fn within(budgets: Budgets) -> Wishes {
        Wishes { budgets, ..Wishes::default() }
    }

    #[test]
    fn the_best_by_a_goal_is_chosen_and_says_why() {
        let linkable = Budgets { linkable: true, ..Budgets::default() };
        let clients = Clients { lookups: 10_000.0, ..Clients::default() };
        let bytes = Wishes { goal: Goal::Bytes, budgets: linkable, clients, ..Wishes::default() };
        for (wishes, protocol) in
            [(bytes, Protocol::Tfhe), (Wishes { goal: Goal::Memory, ..Wishes::default() }, Protocol::Simple)]
        {
            let plan = chosen(1 << 20, 256, wishes).unwrap();
            assert_eq!(plan.params.facts().protocol, protocol, "{}", wishes.goal);
            let choice = plan.choice.expect("there was one");
            assert!(choice.chosen.contains(" ms a look-up") && choice.next.is_some(), "{choice:?}");
        }
    }

    #[test]
    fn a_table_is_downloaded_if_that_is_little() {
        for (count, is_downloaded) in [(1, true), (10, true), (1000, true), (100_000, false)] {
            let plan = chosen(count, 100, Wishes::default()).unwrap();
            assert_eq!(plan.params.facts().protocol == Protocol::Download, is_downloaded, "{count}");
            let without =
                chosen(count, 100, within(Budgets { setup: Some(0), ..Budgets::default() })).unwrap();
            assert_eq!(without.params.facts().hint_bytes, 0);
        }
    }

    #[test]
    fn budgets_are_kept_or_refused_with_what_binds() {
        let default =
            choose(records(1 << 20, 1024).lengths(), true, &BuildOptions::default(), &Silent).unwrap();
        let facts = default.params.facts();
        let upload = facts.query.total() as u64 - 1;
        let smaller = within(Budgets { upload: Some(upload), ..Budgets::default() });
        let plan = chosen(1 << 20, 1024, smaller).unwrap();
        assert!(plan.params.facts().query.total() as u64 <= upload);

        let refused = within(Budgets { upload: Some(1000), ..Budgets::default() });
        let error = chosen(1 << 20, 1024, refused).err().expect("no such table").to_string();
        assert!(
            error.contains("'max-upload' allows 1000 B") && error.contains("the nearest is 'protocol: "),
            "{error}"
        );
        // A protocol with keys is within this budget.
        let linkable = Budgets { upload: Some(1000), linkable: true, ..Budgets::default() };
        let plan = chosen(1 << 20, 1024, within(linkable)).unwrap();
        assert!(plan.params.facts().keys.is_some() && plan.params.facts().query.total() <= 1000);

        let memory = Some(MemoryBudget::Times(1.1));
        let plan = chosen(1 << 20, 1024, within(Budgets { memory, ..Budgets::default() })).unwrap();
        assert!(plan.file_bytes() as f64 <= 1.2 * (1u64 << 30) as f64);
    }

    #[test]
    fn a_hint_of_gigabytes_does_not_win_by_what_it_spares_the_server() {
        let records = records(2, 16 << 20);
        let machine = Machine::reference();
        let offers =
            offers(&records, &BuildOptions::default(), &Wishes::default(), machine, &Silent).unwrap();
        assert!(offers[0].setup_bytes() < 1 << 30, "{:?}", offers[0]);
        let wishes = Wishes::default();
        let hint = Offer { setup_bytes_down: offers[0].setup_bytes_down + (1 << 30), ..offers[0].clone() };
        let memory = Offer { server_bytes: offers[0].server_bytes + (1 << 30), ..offers[0].clone() };
        let score = |offer| wishes.score(offer, machine.threads);
        assert!(score(&hint) > score(&offers[0]) && score(&hint) > score(&memory));
    }

    #[test]
    fn a_default_fills_flights_and_takes_little_memory() {
        let machine = Machine::reference();
        for (count, size) in [
            (1 << 18, 4096),
            (1 << 20, 1024),
            (1 << 21, 4096),
            (30_000_000, 256),
            (4_000_000, 64),
            (200_000_000, 24),
        ] {
            let records = records(count, size);
            let wishes = Wishes::default();
            let best = &offers(&records, &BuildOptions::default(), &wishes, machine, &Silent).unwrap()[0];
            let most = 1.6 * (count * size) as f64 + f64::from(64 << 20);
            assert!(best.server_bytes as f64 <= most, "{count} x {size}: {best:?}");
            // With a fifth more bytes a query would take another flight, or the flight would be half empty.
            let flights = |bytes_up| wishes.network.look_up_flights(&Offer { bytes_up, ..best.clone() });
            assert!(flights(best.bytes_up * 6 / 5) > flights(best.bytes_up), "{count} x {size}: {best:?}");
        }
    }

    #[test]
    fn goals_order_what_is_offered() {
        let records = records(100_000, 200);
        let machine = Machine::reference();
        for (_, goal) in Goal::ALL {
            let budgets = Budgets { linkable: true, ..Budgets::default() };
            let wishes = Wishes { goal, budgets, ..Wishes::default() };
            let offers = offers(&records, &BuildOptions::default(), &wishes, machine, &Silent).unwrap();
            let score = |offer: &Offer| wishes.score(offer, machine.threads);
            assert!(offers.windows(2).all(|pair| score(&pair[0]) <= score(&pair[1])), "{goal}");
            let best = crate::planner::undominated(&offers);
            assert!(best.len() < offers.len() && best[0] == offers[0], "{goal}");
            assert!(offers.iter().all(|offer| offer.seconds > 0.0 && offer.security_bits >= 128.0));
        }
    }
}
