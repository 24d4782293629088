//! Offers as a table to read.

use hush_engine::{
    Seconds,
    planner::{Linkable, Machine, Offer, Records, Wishes},
};

use crate::report::bytes;

/// Offers that are listed for people at most.
const MOST: usize = 24;

/// What is printed.
pub(super) struct Shown<'a> {
    pub(super) records: &'a Records,
    pub(super) machine: &'a Machine,
    pub(super) wishes: &'a Wishes,
    /// The best first.
    pub(super) shown: &'a [Offer],
    /// The one that a build would take.
    pub(super) chosen: Option<&'a Offer>,
}

pub(super) fn print(all: &Shown<'_>) {
    let Shown { records, machine, wishes, shown, chosen } = all;
    let (name, level, threads) = (&machine.name, &machine.level, machine.threads);
    println!(
        "{} values of {}, for {name}{}{}",
        records.count(),
        bytes(records.payload()),
        if level.is_empty() { String::new() } else { format!(", {level}") },
        if machine.is_floor() { String::new() } else { format!(", {threads} threads") }
    );
    if machine.is_floor() {
        println!("times are floors: what it takes at least, as no such device was measured");
    }
    println!();
    let line = |cells: [&str; 11]| {
        let [mark, protocol, preset, shape, up, down, setup, server, latency, time, rate] = cells;
        let line = format!(
            "{mark:1} {protocol:<12}{preset:<28}{shape:<36}{up:>10}{down:>11}{setup:>13}{server:>11}{latency:>11}{time:>11}{rate:>11}"
        );
        println!("{}", line.trim_end());
    };
    line([
        "",
        "protocol",
        "set",
        "columns x blocks, tiers",
        "up",
        "down",
        "once",
        "server",
        "look-up",
        "server's",
        "a second",
    ]);
    for offer in shown.iter().take(MOST) {
        let mark = if *chosen == Some(offer) { "*" } else { "" };
        let tiers =
            if offer.tiers.len() > 1 { format!(", {} tiers", offer.tiers.len()) } else { String::new() };
        let form = offer.form.map_or(String::new(), |form| format!(", {form}"));
        let shape = format!("{} x {}{tiers}{form}", offer.geometry.columns, offer.geometry.blocks);
        let setup = if offer.setup_bytes() == 0 { "-".into() } else { bytes(offer.setup_bytes()) };
        let setup = if offer.linkable == Linkable::Lookups { format!("{setup}!") } else { setup };
        line([
            mark,
            offer.protocol.name(),
            offer.preset,
            &shape,
            &bytes(offer.bytes_up),
            &bytes(offer.bytes_down),
            &setup,
            &bytes(offer.server_bytes),
            &Seconds(wishes.latency(offer)).to_string(),
            &Seconds(offer.seconds).to_string(),
            &format!("{:.1}", offer.queries_per_second),
        ]);
    }
    if shown.len() > MOST {
        println!("  and {} more: --json has all", shown.len() - MOST);
    }
    println!();
    println!(
        "by {}; look-up: with sending at {} and {} Mbit/s and a share of what is sent once, of {} look-ups",
        wishes.goal, wishes.network.up, wishes.network.down, wishes.clients.lookups
    );
    if shown.iter().any(|offer| offer.linkable == Linkable::Lookups) {
        println!("!: queries name the client's keys, so a server can tell which look-ups are of one client");
    }
    match chosen {
        Some(offer) => println!("*: hushdb build .. {}", offer.options()),
        None => println!("without --linkable there is none of these that a build takes"),
    }
}
