//! `hushdb plan`.

mod layouts;
mod machines;
mod plot;
mod records;
mod table;

use std::{
    error::Error,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use hush_engine::{
    BackendChoice, Progress,
    builder::{BuildOptions, DEFAULT_TIERS, Tiers},
    planner::{self, ClusterWishes, Layout, Linkable, Machine, Offer, Records, Wishes, undominated},
};
use hush_protocol::{Protocol, descriptor::MAX_TIERS};
use hush_store::ingest::Input;

use super::{
    bar,
    gpus::{Gpu, gpus},
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
    /// This protocol alone.
    #[arg(long, value_name = "NAME")]
    protocol: Option<Protocol>,
    /// Length tiers at most.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TIERS as u64, value_parser = clap::value_parser!(u64).range(1..=MAX_TIERS as u64))]
    max_tiers: u64,
    /// Every table, also those that others are better than in everything.
    #[arg(long)]
    all: bool,
    /// Print JSON, an object a line.
    #[arg(long)]
    json: bool,
    /// Draw them: bytes against server time, to FILE.svg or FILE.png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Plan for the machine whose profile is in FILE (--save-machine writes it there), not for this one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recalibrate", "threads"])]
    machine: Option<PathBuf>,
    /// Write the profile that is planned with to FILE.
    #[arg(long, value_name = "FILE")]
    save_machine: Option<PathBuf>,
    /// Measure this machine again: other programs may have slowed it.
    #[arg(long)]
    recalibrate: bool,
    /// Plan a table in parts, on the machines of FILE (docs/plan.md): how many parts, of which weights, and where.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plot", "backend"])]
    machines: Option<PathBuf>,
    /// Look-ups a second that they are to answer.
    #[arg(long, value_name = "N", requires = "machines", value_parser = parse_positive)]
    lookups_per_second: Option<f64>,
    /// Machines that have the same part, at least.
    #[arg(long, value_name = "N", requires = "machines", default_value = "1")]
    replicas: NonZeroUsize,
    /// So many parts, not as few as will do.
    #[arg(long, value_name = "N", requires = "machines")]
    parts: Option<NonZeroUsize>,
    /// Threads of the server; one for every core if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// What computes: cpu, or cuda, for which times are those that a GPU takes at least.
    #[arg(long, value_name = "NAME", default_value = "cpu", value_parser = parse_backend)]
    backend: BackendChoice,
}

fn parse_backend(name: &str) -> Result<BackendChoice, String> {
    match name.parse() {
        Ok(choice @ (BackendChoice::Cpu | BackendChoice::Cuda)) => Ok(choice),
        _ => Err(format!("unknown backend '{name}': use cpu or cuda")),
    }
}

pub(crate) fn run(args: PlanArgs) -> Result<(), Box<dyn Error>> {
    let (all, json, plot) = (args.all, args.json, args.plot.clone());
    let progress = bar::Bar::new();
    if let Some(path) = &args.machines {
        let path = path.clone();
        let text = in_parts(args, &path, &progress)?;
        progress.finish();
        return Ok(report::print(&text)?);
    }
    let planned = planned(args, None, &progress)?;
    progress.finish();
    if let Some(path) = &plot {
        planned.draw(path, all)?;
    }
    let printed = if json {
        let lines = planned.shown(all).iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        report::print(&(lines.join("\n") + "\n"))
    } else {
        report::print(&planned.text(all))
    };
    Ok(printed?)
}

/// What `plan --machines` prints: the layouts of tables that the records of the arguments could have, on the machines of a file.
fn in_parts(args: PlanArgs, machines: &Path, progress: &dyn Progress) -> Result<String, Box<dyn Error>> {
    let (all, json) = (args.all, args.json);
    let machine = || -> Result<Arc<Machine>, Box<dyn Error>> {
        let machine = match &args.machine {
            Some(path) => wishes::read_machine(path)?,
            None => wishes::this_machine(super::threads(args.threads), args.recalibrate, progress)?,
        };
        if let Some(path) = &args.save_machine {
            wishes::save_machine(&machine, path)?;
        }
        Ok(machine)
    };
    let cluster = machines::read(machines, machine)?;
    let (asked, wanted, options) = (args.wishes.wishes(), args.cluster_wishes(), args.build_options());
    let may_link = asked.budgets.linkable || args.protocol.is_some();
    let records = args.records.read(None, progress)?;
    let mut listed = asked;
    listed.budgets.linkable = true;
    let layouts = planner::layouts(&records, &options, &listed, &wanted, &cluster, progress)?;
    let best = Layout::undominated(&layouts);
    let shown = if all { &layouts } else { &best };
    if json {
        let lines = shown.iter().map(|layout| {
            let mut value = serde_json::to_value(layout)?;
            value["command"] = layout.serve("TABLE").into();
            serde_json::to_string(&value)
        });
        return Ok(lines.collect::<Result<Vec<_>, _>>()?.join("\n") + "\n");
    }
    let is_taken = |layout: &&Layout| may_link || layout.table.linkable == Linkable::Nothing;
    let chosen = shown.iter().find(is_taken);
    Ok(layouts::text(&layouts::Laid { records: &records, wishes: &asked, shown, chosen }))
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
            rate: self.lookups_per_second,
            replicas: self.replicas.get(),
            parts: self.parts.map(NonZeroUsize::get),
        }
    }
}

/// The tables that records could have.
pub struct Planned {
    records: Records,
    machine: Arc<Machine>,
    /// Those of this machine, if it is planned for them.
    gpus: Vec<Gpu>,
    asked: Wishes,
    offers: Vec<Offer>,
    /// Those that no other is better than in everything.
    best: Vec<Offer>,
    chosen: Option<Offer>,
}

impl Planned {
    /// The tables, the best first: all, or those that no other is better than in everything.
    pub fn shown(&self, all: bool) -> &[Offer] {
        if all { &self.offers } else { &self.best }
    }

    /// The one that a build would take, if it may take any.
    pub fn chosen(&self) -> Option<&Offer> {
        self.chosen.as_ref()
    }

    /// As `hushdb plan` prints them.
    pub fn text(&self, all: bool) -> String {
        let Self { records, machine, gpus, asked: wishes, chosen, .. } = self;
        let (shown, chosen) = (self.shown(all), chosen.as_ref());
        table::text(&table::Shown { records, machine, gpus, wishes, shown, chosen })
    }

    /// Draws them: bytes against server time, to a file whose name ends with `.svg` or `.png`.
    ///
    /// # Errors
    /// If it cannot be written, or has another name.
    pub fn draw(&self, path: &Path, all: bool) -> Result<(), Box<dyn Error>> {
        plot::draw(path, self.shown(all), self.chosen.as_ref(), &self.asked)
    }
}

/// The tables that the records of the arguments could have, or those of `input`.
///
/// # Errors
/// If an input cannot be read, or the arguments are none.
pub(crate) fn planned(
    args: PlanArgs,
    input: Option<Input>,
    progress: &dyn Progress,
) -> Result<Planned, Box<dyn Error>> {
    if args.machines.is_some() {
        return Err("machines: parts are planned by 'hushdb plan --machines' alone".into());
    }
    let options = args.build_options();
    let records = args.records.read(input, progress)?;
    let machine: Arc<Machine> = match (&args.machine, args.backend) {
        (Some(path), _) => wishes::read_machine(path)?,
        (None, BackendChoice::Cuda) => Arc::new(Machine::gpu_floors()),
        (None, _) => wishes::this_machine(super::threads(args.threads), args.recalibrate, progress)?,
    };
    if let Some(path) = &args.save_machine {
        wishes::save_machine(&machine, path)?;
    }
    let asked = args.wishes.wishes();
    // All are listed, also those that a build takes only if it is told.
    let mut listed = asked;
    listed.budgets.linkable = true;
    let offers = planner::offers(&records, &options, &listed, &machine, progress)?;
    let best = undominated(&offers);
    let may_link = asked.budgets.linkable || args.protocol.is_some();
    let is_taken = |offer: &&Offer| may_link || offer.linkable == Linkable::Nothing;
    let chosen = best.iter().find(is_taken).cloned();
    let for_gpus = args.machine.is_none() && args.backend == BackendChoice::Cuda;
    let gpus = if for_gpus { gpus().devices } else { Vec::new() };
    Ok(Planned { records, machine, gpus, asked, offers, best, chosen })
}
