//! The command `hushdb plan`.

mod layouts;
mod plot;
mod records;
mod table;

use std::{
    error::Error,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use hush_build::{
    builder::{BuildOptions, DEFAULT_TIERS, Tiers},
    planner::{
        self, ClusterWishes, Linkable, Machine, Network, Node, Offer, Records, SendWindow, Spread, Wishes,
        undominated,
    },
};
use hush_engine::{BackendChoice, Progress, SpreadTimes};
use hush_ingest::Input;
use hush_protocol::{Protocol, descriptor::MAX_TIERS};
use serde::Serialize;

use super::{
    bar,
    gpus::{GpuReport, gpus},
    wishes::{self, WishArgs, parse_positive},
};
use crate::report;

/// List the tables that records could have, with what each costs, and the one that suits best.
#[derive(Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    records: records::RecordsArgs,
    #[command(flatten)]
    wishes: WishArgs,
    /// Plan for this protocol alone.
    #[arg(long, value_name = "NAME")]
    protocol: Option<Protocol>,
    /// Most length tiers.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TIERS as u64, value_parser = clap::value_parser!(u64).range(1..=MAX_TIERS as u64))]
    max_tiers: u64,
    /// List all tables, even those that another table beats in everything.
    #[arg(long)]
    all: bool,
    /// Print JSON, an object a line.
    #[arg(long)]
    json: bool,
    /// Draw the tables, bytes against server time, to FILE.svg or FILE.png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Profile of the machine to plan for (from --save-machine). If not given, this machine.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recalibrate", "threads"])]
    machine: Option<PathBuf>,
    /// Write the profile of the machine to FILE.
    #[arg(long, value_name = "FILE")]
    save_machine: Option<PathBuf>,
    /// Measure this machine again, since other programs may have slowed down the last measurement.
    #[arg(long)]
    recalibrate: bool,
    /// Plan a table in parts, on machines of this many cores, this memory and this network rate in Mbit/s, such as 16,64G,10000.
    /// Give it once if all machines are alike, or once for each part.
    #[arg(long, value_name = "CORES,MEMORY,MBIT", value_parser = layouts::parse_node, conflicts_with_all = ["plot", "backend"])]
    node: Vec<Node>,
    /// Look-ups a second that the machines must answer.
    #[arg(long, value_name = "N", requires = "node", value_parser = parse_positive)]
    lookups_per_second: Option<f64>,
    /// Least number of machines that have the same part.
    #[arg(long, value_name = "N", requires = "node", default_value = "1")]
    replicas: NonZeroUsize,
    /// Number of parts. If not given, the fewest that suffice.
    #[arg(long, value_name = "N", requires = "node")]
    parts: Option<NonZeroUsize>,
    /// Shares of the parts, such as 2,2,1. If not given, proportional to the cores of their machines.
    #[arg(long, value_name = "W,..", requires = "node", value_delimiter = ',')]
    weights: Vec<NonZeroU32>,
    /// Number of threads of the server. If not given, one for every core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Backend that computes: cpu, or cuda, whose times are lower bounds.
    #[arg(long, value_name = "NAME", default_value = "cpu", value_parser = parse_backend)]
    backend: BackendChoice,
    /// Number of GPUs of a server, to list what copies and shares of the chosen table do on them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=16), conflicts_with_all = ["node", "plot"])]
    gpus: Option<u16>,
}

fn parse_backend(name: &str) -> Result<BackendChoice, String> {
    match name.parse() {
        Ok(choice @ (BackendChoice::Cpu | BackendChoice::Cuda)) => Ok(choice),
        _ => Err(format!("unknown backend '{name}': use cpu or cuda")),
    }
}

/// Returns the options of `hushdb build` that build this table, as on a command line.
pub fn command_line(offer: &Offer) -> String {
    let options = offer.options();
    let words = options.iter().map(|(name, value)| format!("--{name} {value}"));
    words.collect::<Vec<_>>().join(" ")
}

/// Formats a line of a table. A cell of a negative width is flush left.
fn row<const N: usize>(cells: [&str; N], widths: [isize; N]) -> String {
    let cells = cells.into_iter().zip(widths).map(|(cell, width)| match width.unsigned_abs() {
        wide if width < 0 => format!("{cell:<wide$}"),
        wide => format!("{cell:>wide$}"),
    });
    cells.collect::<String>().trim_end().to_owned()
}

pub(crate) fn run(args: PlanArgs) -> Result<(), Box<dyn Error>> {
    let all = args.all;
    let json = args.json;
    let plot = args.plot.clone();
    let progress = bar::Bar::new();
    if !args.node.is_empty() {
        let text = in_parts(args, &progress)?;
        progress.finish();
        return Ok(report::print(&text)?);
    }
    let planned = planned(args, None, &progress)?;
    progress.finish();
    if let Some(path) = &plot {
        planned.draw(path, all)?;
    }
    let printed = if json {
        let lines = planned.shown(all).iter().map(|offer| serde_json::to_string(&planned.line(offer)));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        report::print(&(lines.join("\n") + "\n"))
    } else {
        report::print(&planned.text(all))
    };
    Ok(printed?)
}

/// Returns the output of `plan --node`: the layouts of the tables that the records of the arguments could have.
fn in_parts(args: PlanArgs, progress: &dyn Progress) -> Result<String, Box<dyn Error>> {
    let json = args.json;
    let machine = args.machine(progress)?;
    let asked = args.wishes.wishes();
    let wanted = args.cluster_wishes();
    let options = args.build_options();
    let may_link = asked.budgets.linkable || args.protocol.is_some();
    let records = args.records.read(None, progress)?;
    let mut listed = asked;
    listed.budgets.linkable = true;
    let layouts = planner::layouts(&records, &options, &listed, &wanted, &machine, progress)?;
    if json {
        let lines = layouts.iter().map(|layout| {
            let mut value = serde_json::to_value(layout)?;
            value["command"] = layout.serve("TABLE").into();
            serde_json::to_string(&value)
        });
        return Ok(lines.collect::<Result<Vec<_>, _>>()?.join("\n") + "\n");
    }
    let chosen = layouts.iter().find(|layout| may_link || layout.table.linkable == Linkable::Nothing);
    Ok(layouts::text(&layouts::PrintedLayouts {
        records: &records,
        wishes: &asked,
        layouts: &layouts,
        chosen,
    }))
}

impl PlanArgs {
    fn build_options(&self) -> BuildOptions {
        BuildOptions {
            protocol: self.protocol,
            tiers: Tiers::AtMost(self.max_tiers as usize),
            ..BuildOptions::default()
        }
    }

    fn cluster_wishes(&self) -> ClusterWishes {
        ClusterWishes {
            nodes: self.node.clone(),
            weights: (!self.weights.is_empty())
                .then(|| self.weights.iter().map(|weight| weight.get()).collect()),
            rate: self.lookups_per_second,
            replicas: self.replicas.get(),
            parts: self.parts.map(NonZeroUsize::get),
        }
    }

    /// Returns the machine to plan for. Writes its profile if the arguments request it.
    fn machine(&self, progress: &dyn Progress) -> Result<Arc<Machine>, Box<dyn Error>> {
        let machine = match (&self.machine, self.backend) {
            (Some(path), _) => wishes::read_machine(path)?,
            (None, BackendChoice::Cuda) => Arc::new(Machine::gpu_floors()),
            (None, _) => wishes::this_machine(super::threads(self.threads), self.recalibrate, progress)?,
        };
        if let Some(path) = &self.save_machine {
            wishes::save_machine(&machine, path)?;
        }
        Ok(machine)
    }
}

/// An offer with its times over the clients' network: a line of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct OfferLine {
    #[serde(flatten)]
    pub(super) offer: Offer,
    /// The windows of TCP that a query and its answer take.
    flights: u32,
    /// Seconds with handshakes and all that is sent once.
    first_look_up_seconds: f64,
    /// Seconds of a client that is ready and was idle.
    look_up_seconds: f64,
    /// Seconds of a look-up right after others.
    warm_look_up_seconds: f64,
    /// The ways to spread the table over several GPUs, if these were asked for, of the table that a build takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spreads: Vec<Spread>,
}

impl OfferLine {
    pub(super) fn new(offer: Offer, network: &Network) -> Self {
        Self {
            flights: network.look_up_flights(&offer),
            first_look_up_seconds: network.first_look_up_seconds(&offer),
            look_up_seconds: network.look_up_seconds(&offer, SendWindow::Cold),
            warm_look_up_seconds: network.look_up_seconds(&offer, SendWindow::Warm),
            spreads: Vec::new(),
            offer,
        }
    }
}

/// The tables that records could have, and the best of them.
pub struct Planned {
    records: Records,
    machine: Arc<Machine>,
    /// The GPUs of this machine, if the plan is for them.
    gpus: Vec<GpuReport>,
    asked: Wishes,
    offers: Vec<Offer>,
    /// The Pareto-optimal offers.
    best: Vec<Offer>,
    chosen: Option<Offer>,
    /// The ways to spread the chosen table over several GPUs, if these are asked for.
    spreads: Vec<Spread>,
}

impl Planned {
    /// Returns the tables, the best first: all, or the Pareto-optimal ones.
    pub fn shown(&self, all: bool) -> &[Offer] {
        if all { &self.offers } else { &self.best }
    }

    /// Returns the network of the clients.
    pub fn network(&self) -> &Network {
        &self.asked.network
    }

    /// Returns the table that a build would take, if it may take any.
    pub fn chosen(&self) -> Option<&Offer> {
        self.chosen.as_ref()
    }

    /// Returns an offer with its times over the clients' network, as a line of JSON has it.
    fn line(&self, offer: &Offer) -> OfferLine {
        let line = OfferLine::new(offer.clone(), self.network());
        let spreads = if self.chosen.as_ref() == Some(offer) { self.spreads.clone() } else { Vec::new() };
        OfferLine { spreads, ..line }
    }

    /// Returns the offers as `hushdb plan` prints them.
    pub fn text(&self, all: bool) -> String {
        let Self { records, machine, gpus, asked: wishes, chosen, spreads, .. } = self;
        let shown = self.shown(all);
        let chosen = chosen.as_ref();
        table::text(&table::PrintedOffers { records, machine, gpus, wishes, shown, chosen, spreads })
    }

    /// Draws the tables, bytes against server time, to a file whose name ends with `.svg` or `.png`.
    ///
    /// # Errors
    /// The file cannot be written, or its name ends otherwise.
    pub fn draw(&self, path: &Path, all: bool) -> Result<(), Box<dyn Error>> {
        plot::draw(path, self.shown(all), self.chosen.as_ref(), &self.asked)
    }
}

/// Returns the tables that the records of `input` could have; without it, the records of the arguments.
///
/// # Errors
/// The input cannot be read, or the arguments are invalid.
pub(crate) fn planned(
    args: PlanArgs,
    input: Option<Input>,
    progress: &dyn Progress,
) -> Result<Planned, Box<dyn Error>> {
    if !args.node.is_empty() {
        return Err("node: parts are planned by 'hushdb plan --node' alone".into());
    }
    if args.gpus.is_some() && args.backend != BackendChoice::Cuda {
        return Err("gpus: several GPUs are planned with the backend cuda".into());
    }
    let options = args.build_options();
    let machine = args.machine(progress)?;
    let for_gpus = args.machine.is_none() && args.backend == BackendChoice::Cuda;
    let asked = args.wishes.wishes();
    let may_link = asked.budgets.linkable || args.protocol.is_some();
    let records = args.records.read(input, progress)?;
    // Linkable protocols are listed too, although a build takes them only with --linkable.
    let mut listed = asked;
    listed.budgets.linkable = true;
    let offers = planner::offers(&records, &options, &listed, &machine, progress)?;
    let best = undominated(&offers);
    let chosen = best.iter().find(|offer: &&Offer| may_link || offer.linkable == Linkable::Nothing).cloned();
    let spreads = match (&chosen, args.gpus) {
        (Some(offer), Some(count)) => {
            planner::spreads(&records, offer, &machine, count.into(), SpreadTimes::PCIE)?
        }
        _ => Vec::new(),
    };
    let gpus = if for_gpus { gpus().devices } else { Vec::new() };
    Ok(Planned { records, machine, gpus, asked, offers, best, chosen, spreads })
}
