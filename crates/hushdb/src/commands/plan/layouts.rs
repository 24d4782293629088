//! The layouts of tables in parts, as a text table.

use hush_build::planner::{Layout, Linkable, Node, Placed, Records, Stages, Wishes};
use hush_engine::Seconds;

use super::{command_line, row};
use crate::{
    commands::wishes::{parse_bytes, parse_positive},
    report::bytes,
};

/// The most cores of a machine.
const MOST_CORES: usize = 1 << 16;
/// The number of bytes in 10^6 bits.
const MBIT: f64 = 1e6 / 8.0;

/// The most layouts that are listed for people.
const MOST: usize = 16;
/// The widths of the columns of layouts, of their parts and of their times.
const LAYOUT: [isize; 13] = [-2, -12, -19, 9, 12, 10, 12, 12, 12, 12, 10, 7, 10];
const PART: [isize; 6] = [-2, -14, -20, 6, 8, 14];
const TIMES: [isize; 7] = [-2, -14, 12, 12, 12, 12, 12];

/// The layouts as they are printed.
pub(super) struct PrintedLayouts<'a> {
    pub(super) records: &'a Records,
    pub(super) wishes: &'a Wishes,
    /// The layouts, the best first.
    pub(super) layouts: &'a [Layout],
    /// The layout whose parts and commands are listed.
    pub(super) chosen: Option<&'a Layout>,
}

/// Parses a machine: its cores, its memory, and its network in Mbit/s.
pub(super) fn parse_node(text: &str) -> Result<Node, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let [cores, memory, network] = fields[..] else {
        return Err("a machine is CORES,MEMORY,MBIT, for example 16,64G,10000".into());
    };
    let cores = cores.parse().ok().filter(|cores| (1..=MOST_CORES).contains(cores));
    let cores = cores.ok_or("cores are a number above 0, and no more than 65536")?;
    Ok(Node { cores, memory: parse_bytes(memory)?, network: MBIT * parse_positive(network)? })
}

/// Formats the layouts, and the parts, the times and the commands of the chosen one.
pub(super) fn text(all: &PrintedLayouts<'_>) -> String {
    let PrintedLayouts { records, wishes, layouts, chosen } = all;
    let mut lines = vec![
        format!("{} values, {} in all, in parts", records.count(), bytes(records.payload())),
        String::new(),
    ];
    let names = [
        "", "protocol", "set", "columns", "parts", "machines", "up", "down", "to head", "memory", "look-up",
        "batch", "a second",
    ];
    lines.push(row(names, LAYOUT));
    lines.extend(layouts.iter().take(MOST).map(|layout| laid(layout, *chosen == Some(layout))));
    if layouts.len() > MOST {
        lines.push(format!("  and {} more: --json has all", layouts.len() - MOST));
    }
    lines.push(String::new());
    lines.push(format!(
        "by {}; to head: what all parts send a query; look-up: with sending at {} and a share of what is sent once",
        wishes.goal, wishes.network
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

fn laid(layout: &Layout, is_chosen: bool) -> String {
    let table = &layout.table;
    let replicas = if layout.replicas > 1 { format!(" x {}", layout.replicas) } else { String::new() };
    let linkable = if table.linkable == Linkable::Lookups { "!" } else { "" };
    let cells = [
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
    ];
    row(cells, LAYOUT)
}

/// Returns a line for each run of equal parts.
fn parts(layout: &Layout) -> Vec<String> {
    let mut lines = vec![row(["", "part", "machine", "cores", "weight", "memory"], PART)];
    let mut first = 0;
    for alike in layout.parts.chunk_by(|a, b| a == b) {
        let last = first + alike.len() - 1;
        let name = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let Placed { kind, weight, cores, bytes: memory } = &alike[0];
        lines.push(row(["", &name, kind, &cores.to_string(), &weight.to_string(), &bytes(*memory)], PART));
        first = last + 1;
    }
    let heads = if layout.heads == 1 { "head".to_owned() } else { format!("{} heads", layout.heads) };
    lines.push(row(["", &heads, "", "", "", &bytes(layout.head_bytes)], PART));
    lines
}

fn times(layout: &Layout) -> Vec<String> {
    let of = |name: &str, stages: &Stages| {
        let Stages { broadcast, scan, gather, finish, total } = *stages;
        let [broadcast, scan, gather, finish, total] =
            [broadcast, scan, gather, finish, total].map(|seconds| Seconds(seconds).to_string());
        row(["", name, &broadcast, &scan, &gather, &finish, &total], TIMES)
    };
    vec![
        row(["", "", "to parts", "slowest", "to head", "finish", "all"], TIMES),
        of("one query", &layout.single),
        of(&format!("batch of {}", layout.batch), &layout.batched),
    ]
}
