//! The service as one program with a seed: a server, its parts, clients, epochs, keys, clocks and the network between them.
//!
//! | file | what |
//! |------|------|
//! | `dice.rs` | what a seed draws |
//! | `tables.rs` | the tables, in several epochs each, and what a look-up must find in each |
//! | `parts.rs` | a table whose parts are elsewhere, and fail |
//! | `world.rs` | the server and its operator: new epochs, restarts, failed tables, jumps of the clock; what was served when |
//! | `network.rs` | requests that are late, lost, cut, sent twice |
//! | `client.rs` | a client: its host and clock, its look-ups, and what must hold of each |
//!
//! The server is the real one without sockets ([`hush_server::in_process`]), the clients are real sessions, and the tables real
//! ones of small parameter sets. Time is the paused clock of the runtime: it goes on when nobody has anything to do. No two events
//! of the network happen in the same millisecond, so that a seed gives the same run each time. A seed that fails is printed:
//! `HUSHDB_SEEDS=FROM..TO cargo test -p hush-operator --test simulation` runs it again, and
//! `HUSHDB_TRACE=1` prints what happens. `HUSHDB_HOURS` sets the hours of a new epoch each second.

mod client;
mod dice;
#[path = "../../../hush-client/tests/samples/kept_hints.rs"]
mod kept_hints;
mod network;
mod parts;
mod tables;
mod world;

use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use dice::Dice;
use peak_alloc::PeakAlloc;
use tables::{Built, Tables};
use world::{Plan, Trace, World};

/// The seeds of a run that names none.
const SEEDS: Range<u64> = 0..400;
/// The hours of which the second half must have no more memory than the first, but for one part in twenty. Other tests must not
/// run meanwhile.
const LONG: u64 = 20;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Runs a seed. Returns what happened. `secret` chooses what is looked up, and nothing else.
fn run(tables: &Rc<Tables>, seed: u64, secret: u64) -> Trace {
    run_planned(tables, Plan::new(&mut Dice::new(seed)), seed, secret)
}

fn run_planned(tables: &Rc<Tables>, plan: Plan, seed: u64, secret: u64) -> Trace {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(World::live(tables.clone(), plan, seed, secret))
}

/// Returns the message of a panic in `run`, or `None` if there is none.
fn fault(run: impl FnOnce()) -> Option<String> {
    let panicked = catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = panicked.downcast_ref::<String>().cloned();
    Some(text.unwrap_or_else(|| panicked.downcast_ref::<&str>().copied().unwrap_or("a panic").into()))
}

/// Returns the seeds that the environment names, `FROM..TO`, or `default`.
fn seeds(default: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("HUSHDB_SEEDS") else { return default };
    let (from, to) = text.split_once("..").expect("HUSHDB_SEEDS is FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn no_seed_finds_a_fault() {
    let seeds = seeds(SEEDS);
    let built = Built::new();
    let next = AtomicU64::new(seeds.start);
    let (answers, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let tables = Rc::new(built.open());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let found = fault(|| {
                let trace = run(&tables, seed, seed);
                answers.fetch_add(trace.found, Ordering::Relaxed);
                failures.fetch_add(trace.failed, Ordering::Relaxed);
            });
            if let Some(fault) = found {
                panic!("seed {seed}: {fault}\nHUSHDB_SEEDS={seed}..{} runs it again", seed + 1);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let (answers, failures) = (answers.into_inner(), failures.into_inner());
    println!(
        "{} seeds: {answers} look-ups found all, {failures} ended with an error",
        seeds.end - seeds.start
    );
    assert!(answers > 0 && (seeds.end - seeds.start < 20 || failures > 0), "{answers}, {failures}");
}

#[test]
fn a_seed_gives_the_same_run_whatever_is_looked_up() {
    let tables = Rc::new(Built::new().open());
    for seed in 0..40 {
        let (one, other) = (run(&tables, seed, 1).lines, run(&tables, seed, 2).lines);
        let differs = one.iter().zip(&other).position(|(a, b)| a != b);
        if let Some(line) = differs {
            panic!("seed {seed}, line {line}:\n{}\n{}", one[line], other[line]);
        }
        assert_eq!(one.len(), other.len(), "seed {seed}");
    }
}

#[test]
fn epochs_a_second_leave_no_memory_behind() {
    let hours = std::env::var("HUSHDB_HOURS").map_or(1, |hours| hours.parse().expect("a number"));
    let tables = Rc::new(Built::new().open());
    let trace = run_planned(&tables, Plan::hours_of_epochs(hours), 0, 0);
    assert!(trace.found > 0);
    // In the first hour the server fills its store of keys.
    let memory = trace.memory.get(1..).unwrap_or_default();
    let (first, last) = memory.split_at(memory.len() / 2);
    let [first, last] = [first, last].map(|some| some.iter().copied().max().unwrap_or(0));
    println!("{hours} hours: {} calls found all; at most {first} and {last} bytes of memory", trace.found);
    assert!(hours < LONG || last * 20 <= first * 21, "memory grows: {memory:?}");
}

#[test]
fn planted_faults_are_found() {
    let tables = Rc::new(Built::new().open());
    for (planted, text) in
        [(world::Planted::WrongEpoch, "wrong answer"), (world::Planted::LosesRequests, "stuck")]
    {
        let found = (0..20).find_map(|seed| {
            let mut plan = Plan::new(&mut Dice::new(seed));
            plan.planted = Some(planted);
            fault(|| drop(run_planned(&tables, plan, seed, seed)))
        });
        let found = found.unwrap_or_else(|| panic!("{planted:?} is not found"));
        assert!(found.contains(text), "{planted:?}: {found}");
    }
}
