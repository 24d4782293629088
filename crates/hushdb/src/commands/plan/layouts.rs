//! Layouts of tables in parts, as a table to read.

use hush_build::planner::{Layout, Linkable, Node, Placed, Records, Stages, Wishes};
use hush_engine::Seconds;

use super::command_line;
use crate::{
    commands::wishes::{parse_bytes, parse_positive},
    report::bytes,
};

/// The most cores of a machine.
const MOST_CORES: usize = 1 << 16;
/// 10^6 bits, in bytes.
const MBIT: f64 = 1e6 / 8.0;

/// Layouts that are listed for people at most.
const MOST: usize = 16;

/// What is printed.
pub(super) struct Laid<'a> {
    pub(super) records: &'a Records,
    pub(super) wishes: &'a Wishes,
    /// The best first.
    pub(super) layouts: &'a [Layout],
    /// The one whose parts are listed, and whose commands.
    pub(super) chosen: Option<&'a Layout>,
}

/// Reads a machine: its cores, its memory, and its network in Mbit/s.
pub(super) fn parse_node(text: &str) -> Result<Node, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let [cores, memory, network] = fields[..] else {
        return Err("a machine is CORES,MEMORY,MBIT, for example 16,64G,10000".into());
    };
    let cores = cores.parse().ok().filter(|cores| (1..=MOST_CORES).contains(cores));
    let cores = cores.ok_or("cores are a number above 0, and no more than 65536")?;
    Ok(Node { cores, memory: parse_bytes(memory)?, network: MBIT * parse_positive(network)? })
}

/// The layouts, the parts of the one that is chosen, its times and its commands.
pub(super) fn text(all: &Laid<'_>) -> String {
    let Laid { records, wishes, layouts, chosen } = all;
    let mut lines = vec![
        format!("{} values, {} in all, in parts", records.count(), bytes(records.payload())),
        String::new(),
    ];
    lines.push(row([
        "", "protocol", "set", "columns", "parts", "machines", "up", "down", "to head", "memory", "look-up",
        "batch", "a second",
    ]));
    lines.extend(layouts.iter().take(MOST).map(|layout| laid(layout, *chosen == Some(layout))));
    if layouts.len() > MOST {
        lines.push(format!("  and {} more: --json has all", layouts.len() - MOST));
    }
    lines.push(String::new());
    lines.push(format!(
        "by {}; to head: what all parts send a query; look-up: with sending at {} and {} Mbit/s and a share of what is sent once",
        wishes.goal, wishes.network.up, wishes.network.down
    ));
    let Some(layout) = chosen else {
        lines.push("without --linkable there is none of these that a build takes".into());
        return lines.join("\n") + "\n";
    };
    lines.push(String::new());
    lines.extend(parts(layout));
    lines.push(String::new());
    lines.extend(times(layout));
    lines.push(String::new());
    lines.push(format!("*: hushdb build .. {} --out TABLE", command_line(&layout.table)));
    let kinds: Vec<&str> = layout.parts.iter().map(|part| &part.kind[..]).collect();
    if kinds.iter().any(|kind| *kind != kinds[0]) {
        lines.push("   ray start --address FIRST:6379 --resources '{\"KIND\": 1}'    on every machine, with its kind".into());
    }
    lines.push(format!("   {}", layout.serve("TABLE")));
    if layout.heads > 1 {
        let more = layout.heads - 1;
        lines.push(format!("   python -m hushdb.ray head TABLE    {more} more of these, each beside a part"));
    }
    lines.join("\n") + "\n"
}

fn row(cells: [&str; 13]) -> String {
    const WIDTHS: [usize; 13] = [1, 12, 19, 9, 12, 10, 12, 12, 12, 12, 10, 7, 10];
    let mut row = String::new();
    for (at, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        match at {
            0 => row += &format!("{cell:width$} "),
            1 | 2 => row += &format!("{cell:<width$}"),
            _ => row += &format!("{cell:>width$}"),
        }
    }
    row.trim_end().to_owned()
}

fn laid(layout: &Layout, is_chosen: bool) -> String {
    let table = &layout.table;
    let replicas = if layout.replicas > 1 { format!(" x {}", layout.replicas) } else { String::new() };
    let linkable = if table.linkable == Linkable::Lookups { "!" } else { "" };
    row([
        if is_chosen { "*" } else { "" },
        &format!("{}{linkable}", table.protocol),
        table.preset,
        &table.geometry.columns.to_string(),
        &format!("{}{replicas}", layout.parts.len()),
        &layout.machines.to_string(),
        &bytes(table.bytes_up),
        &bytes(table.bytes_down),
        &bytes(layout.partial_bytes),
        &bytes(layout.bytes()),
        &Seconds(layout.latency).to_string(),
        &layout.batch.to_string(),
        &format!("{:.1}", layout.queries_per_second),
    ])
}

/// A line for parts in a row that are alike.
fn parts(layout: &Layout) -> Vec<String> {
    let line = |part: &str, kind: &str, cores: &str, weight: &str, memory: &str| {
        format!("  {part:<14}{kind:<20}{cores:>6}{weight:>8}{memory:>14}")
    };
    let mut lines = vec![line("part", "machine", "cores", "weight", "memory")];
    let mut first = 0;
    for alike in layout.parts.chunk_by(|a, b| a == b) {
        let last = first + alike.len() - 1;
        let name = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let Placed { kind, weight, cores, bytes: memory } = &alike[0];
        lines.push(line(&name, kind, &cores.to_string(), &weight.to_string(), &bytes(*memory)));
        first = last + 1;
    }
    let heads = if layout.heads == 1 { "head".to_owned() } else { format!("{} heads", layout.heads) };
    lines.push(line(&heads, "", "", "", &bytes(layout.head_bytes)));
    lines
}

fn times(layout: &Layout) -> Vec<String> {
    let line = |name: &str, cells: [String; 5]| {
        let [broadcast, scan, gather, finish, total] = cells;
        format!("  {name:<14}{broadcast:>12}{scan:>12}{gather:>12}{finish:>12}{total:>12}")
    };
    let of = |stages: &Stages| {
        [stages.broadcast, stages.scan, stages.gather, stages.finish, stages.total]
            .map(|seconds| Seconds(seconds).to_string())
    };
    vec![
        line("", ["to parts", "slowest", "to head", "finish", "all"].map(str::to_owned)),
        line("one query", of(&layout.single)),
        line(&format!("batch of {}", layout.batch), of(&layout.batched)),
    ]
}
