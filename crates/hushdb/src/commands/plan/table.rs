//! The offers as a text table.

use hush_build::planner::{Linkable, Machine, Offer, Records, Spread, Wishes};
use hush_engine::Seconds;

use super::{command_line, row};
use crate::{commands::gpus::GpuReport, report::bytes};

/// The most offers that are listed for people.
const MOST: usize = 24;
/// The widths of the columns.
const OFFER: [isize; 13] = [-2, -12, -28, -36, 10, 11, 13, 11, 11, 9, 11, 11, 11];
/// The widths of the columns of the ways to spread a table.
const SPREAD: [isize; 7] = [-2, -12, 12, 12, 8, 12, 16];

/// The offers as they are printed.
pub(super) struct PrintedOffers<'a> {
    pub(super) records: &'a Records,
    pub(super) machine: &'a Machine,
    /// The GPUs on which the table would be served.
    pub(super) gpus: &'a [GpuReport],
    pub(super) wishes: &'a Wishes,
    /// The offers, the best first.
    pub(super) shown: &'a [Offer],
    /// The offer that a build would take.
    pub(super) chosen: Option<&'a Offer>,
    /// The ways to spread that offer over several GPUs.
    pub(super) spreads: &'a [Spread],
}

/// Formats the table, with the meaning of its columns.
pub(super) fn text(all: &PrintedOffers<'_>) -> String {
    let PrintedOffers { records, machine, gpus, wishes, shown, chosen, spreads } = all;
    let name = &machine.name;
    let level = &machine.level;
    let threads = machine.threads;
    let mut lines = vec![format!(
        "{} values, {} in all, for {name}{}{}",
        records.count(),
        bytes(records.payload()),
        if level.is_empty() { String::new() } else { format!(", {level}") },
        if machine.is_floor() { String::new() } else { format!(", {threads} threads") }
    )];
    if machine.is_floor() {
        lines.push("times are floors: what it takes at least, as no such device was measured".into());
    }
    lines.extend(gpus.iter().enumerate().map(|(ordinal, gpu)| format!("here: GPU {ordinal}, {gpu}")));
    lines.push(String::new());
    let shape = "columns x blocks, tiers";
    let names = [
        "", "protocol", "set", shape, "up", "down", "once", "server", "first", "flights", "look-up",
        "server's", "a second",
    ];
    lines.push(row(names, OFFER));
    lines.extend(shown.iter().take(MOST).map(|offer| offered(offer, wishes, *chosen == Some(offer))));
    if shown.len() > MOST {
        lines.push(format!("  and {} more: --json has all", shown.len() - MOST));
    }
    lines.push(String::new());
    lines.push(format!(
        "by {}; look-up: with sending at {} and a share of what is sent once, of {} look-ups",
        wishes.goal, wishes.network, wishes.clients.lookups
    ));
    lines.push("first: with handshakes and all that is sent once; flights: windows of TCP that a query and its answer take".into());
    if shown.iter().any(|offer| offer.linkable == Linkable::Lookups) {
        let linked = "so a server can tell which look-ups are of one client";
        lines.push(format!("!: queries name the client's keys, {linked}"));
    }
    lines.push(match chosen {
        Some(offer) => format!("*: hushdb build .. {}", command_line(offer)),
        None => "without --linkable there is none of these that a build takes".into(),
    });
    if let Some(most) = spreads.last() {
        lines.push(String::new());
        lines.push(format!("* on {} GPUs that exchange words by PCIe:", most.gpus));
        let names = ["", "spread", "on a GPU", "look-up", "batch", "its time", "a second"];
        lines.push(row(names, SPREAD));
        lines.extend(spreads.iter().map(spread));
        lines.push(
            "on a GPU: files alone, without clients' keys and batches, whether or not a GPU has as much"
                .into(),
        );
    }
    lines.join("\n") + "\n"
}

fn spread(spread: &Spread) -> String {
    let cells = [
        "",
        spread.spread,
        &bytes(spread.gpu_bytes),
        &Seconds(spread.seconds).to_string(),
        &spread.batch.to_string(),
        &Seconds(spread.batch_seconds).to_string(),
        &format!("{:.1}", spread.queries_per_second),
    ];
    row(cells, SPREAD)
}

fn offered(offer: &Offer, wishes: &Wishes, is_chosen: bool) -> String {
    let tiers = if offer.tiers.len() > 1 { format!(", {} tiers", offer.tiers.len()) } else { String::new() };
    let form = offer.form.map_or(String::new(), |form| format!(", {form}"));
    let setup = if offer.setup_bytes() == 0 { "-".into() } else { bytes(offer.setup_bytes()) };
    let is_linkable = offer.linkable == Linkable::Lookups;
    let cells = [
        if is_chosen { "*" } else { "" },
        offer.protocol.name(),
        offer.preset,
        &format!("{} x {}{tiers}{form}", offer.geometry.columns, offer.geometry.blocks),
        &bytes(offer.bytes_up),
        &bytes(offer.bytes_down),
        &if is_linkable { format!("{setup}!") } else { setup },
        &bytes(offer.server_bytes),
        &Seconds(wishes.network.first_look_up_seconds(offer)).to_string(),
        &wishes.network.look_up_flights(offer).to_string(),
        &Seconds(wishes.latency(offer)).to_string(),
        &Seconds(offer.seconds).to_string(),
        &format!("{:.1}", offer.queries_per_second),
    ];
    row(cells, OFFER)
}
