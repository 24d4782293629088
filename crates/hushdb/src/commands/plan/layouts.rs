//! Layouts as a table to read.

use hush_engine::{
    Seconds,
    planner::{Layout, Linkable, Placed, Records, Wishes},
};

use crate::report::bytes;

/// Layouts that are listed for people at most.
const MOST: usize = 16;

/// What is printed.
pub(super) struct Laid<'a> {
    pub(super) records: &'a Records,
    pub(super) wishes: &'a Wishes,
    /// The best first.
    pub(super) shown: &'a [Layout],
    /// The one whose parts are listed, and whose commands.
    pub(super) chosen: Option<&'a Layout>,
}

/// The layouts, the parts of the one that is chosen, its times and its commands.
pub(super) fn text(all: &Laid<'_>) -> String {
    let Laid { records, wishes, shown, chosen } = all;
    let mut lines =
        vec![format!("{} values of {}, in parts", records.count(), bytes(records.payload())), String::new()];
    lines.push(row([
        "", "protocol", "set", "columns", "parts", "machines", "an hour", "up", "down", "to head", "memory",
        "look-up", "batch", "a second",
    ]));
    lines.extend(shown.iter().take(MOST).map(|layout| laid(layout, *chosen == Some(layout))));
    if shown.len() > MOST {
        lines.push(format!("  and {} more: --json has all", shown.len() - MOST));
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
    lines.push(format!("*: hushdb build .. {} --out TABLE", layout.table.options()));
    let kinds: Vec<&str> = layout.parts.iter().map(|part| &part.kind[..]).collect();
    if kinds.iter().any(|kind| *kind != kinds[0]) {
        lines.push("   ray start --address FIRST:6379 --resources '{\"KIND\": 1}'    on every machine, with its kind".into());
    }
    lines.push(format!("   {}", layout.serve("TABLE")));
    if layout.heads > 1 {
        let more = layout.heads - 1;
        lines.push(format!(
            "   python -m hushdb.ray head TABLE    {more} more of these, on {} machines",
            layout.head_kind
        ));
    }
    lines.join("\n") + "\n"
}

fn row(cells: [&str; 14]) -> String {
    let [
        mark,
        protocol,
        preset,
        columns,
        parts,
        machines,
        price,
        up,
        down,
        partials,
        memory,
        latency,
        batch,
        rate,
    ] = cells;
    let row = format!(
        "{mark:1} {protocol:<12}{preset:<19}{columns:>9}{parts:>12}{machines:>10}{price:>9}{up:>12}{down:>12}{partials:>12}\
         {memory:>12}{latency:>10}{batch:>7}{rate:>10}"
    );
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
        &layout.price_hour.map_or("-".into(), |price| format!("{price:.2}")),
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
    lines.push(line(&heads, &layout.head_kind, "", "", &bytes(layout.head_bytes)));
    lines
}

fn times(layout: &Layout) -> Vec<String> {
    let line = |name: &str, cells: [String; 5]| {
        let [broadcast, scan, gather, finish, total] = cells;
        format!("  {name:<14}{broadcast:>12}{scan:>12}{gather:>12}{finish:>12}{total:>12}")
    };
    let of = |stages: &hush_engine::planner::Stages| {
        [stages.broadcast, stages.scan, stages.gather, stages.finish, stages.total]
            .map(|seconds| Seconds(seconds).to_string())
    };
    vec![
        line("", ["to parts", "slowest", "to head", "finish", "all"].map(str::to_owned)),
        line("one query", of(&layout.single)),
        line(&format!("batch of {}", layout.batch), of(&layout.batched)),
    ]
}
