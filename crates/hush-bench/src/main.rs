//! `hush-bench`: measurements as shares of a bound that is measured in the same run.
//!
//! Each measurement has its module. Measurements on a GPU are in `gpu`.

mod answer;
mod build;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod gpu;
mod http;
mod lookups;
mod ntt;
mod paths;
mod planned;
mod probe;
mod report;
mod row;
mod scan;
mod table_files;
mod tables;
mod timing;

use std::{error::Error, num::NonZeroUsize, process::ExitCode, sync::Arc, thread};

use clap::{Parser, ValueEnum};
use hush_cpu::Cpu;
use hush_engine::{BackendChoice, Backends};
use hush_protocol::{Protocol, table::TableShape};

use report::{Column, Report};

/// A benchmark.
#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// The fold over random bytes, for every shape, thread count and batch.
    Scan,
    /// The negacyclic transforms of one polynomial, one thread.
    Ntt,
    /// The hint, and a whole key table.
    Build,
    /// Whole answers, in process and over loopback HTTP.
    Answer,
    /// A table over rings: its build, the steps of an answer, and whole answers.
    Onion,
    /// A table of 256-byte records under tfhe, kept as symbols and in evaluation form: its build, the steps of an answer, and whole
    /// answers.
    Tfhe,
    /// A table of 4-KiB records whose answers are packed: its build, the steps of an answer, and whole answers of hybrid,
    /// exppack-s and double-pack.
    Packed,
    /// A table of 4-KiB records under column packing: its build, the steps of an answer, and whole answers of colpack and
    /// colpack-s.
    Colpack,
    /// The planner's times against those of answers, for tables of every protocol.
    Plan,
    /// The bounds of the GPU: bandwidths and rates of operations
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    GpuFloors,
    /// The steps on the GPU, as shares of that.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    GpuSteps,
    /// From how many queries on another kernel is the faster: kept in the user's cache for all programs that use such a GPU.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    GpuThresholds,
    /// Whole answers on the GPU, from tables of random bytes that are made there.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    GpuAnswers,
}

impl What {
    /// Returns whether the caller may choose the number of columns of tables.
    fn has_columns(self) -> bool {
        self.is_gpu_answers() || matches!(self, Self::Packed | Self::Colpack | Self::Tfhe)
    }

    /// Returns whether the caller may choose batches.
    fn has_batches(self) -> bool {
        self.is_gpu_answers() || matches!(self, Self::Scan | Self::Answer)
    }

    fn is_gpu_answers(self) -> bool {
        #[cfg(any(feature = "cuda", feature = "emulator"))]
        return matches!(self, Self::GpuAnswers);
        #[cfg(not(any(feature = "cuda", feature = "emulator")))]
        false
    }

    /// Returns the columns of a row.
    fn columns(self) -> &'static [Column] {
        match self {
            Self::Ntt => ntt::COLUMNS,
            Self::Plan => planned::COLUMNS,
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            Self::GpuFloors => gpu::RATES,
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            Self::GpuSteps | Self::GpuThresholds | Self::GpuAnswers => gpu::WORK,
            _ => report::ON_CPU,
        }
    }
}

/// Measures a machine: the steps, builds and whole answers of HushDB.
#[derive(Parser)]
#[command(name = "hush-bench", version, about, max_term_width = 100)]
struct Args {
    /// The benchmark
    #[arg(value_enum)]
    what: What,
    /// Bytes of the table (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_size)]
    size: usize,
    /// Protocol of the key tables of `build` and `answer`, frodo and simple if not given; those with evaluation keys have
    /// benchmarks of their own. The only one of `gpu-answers`, which measures tfhe if it is
    /// asked for.
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Columns (D0) of the tables of `tfhe`, `packed`, `colpack` and `gpu-answers`; what is cheapest if not given.
    #[arg(long, value_name = "N")]
    columns: Option<NonZeroUsize>,
    /// Threads; one, and one for every core, if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// The backend of `build` and `answer`: cpu, cuda or auto
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    backend: BackendChoice,
    /// Batch sizes of `scan`, `answer` (1, 2, 4, 8, 16, 32 and 64 if not given) and `gpu-answers` (1, 8, 32 and 64).
    #[arg(long, value_name = "B,..", value_delimiter = ',')]
    batch: Option<Vec<usize>>,
    /// Bytes of a record of `answer`, which then asks by index; values of 1 KiB by key if not given.
    #[arg(long, value_name = "BYTES")]
    record: Option<NonZeroUsize>,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn thread_counts(&self) -> Vec<usize> {
        match (self.threads, threads(None)) {
            (Some(asked), _) => vec![asked.get()],
            (None, 1) => vec![1],
            (None, all) => vec![1, all],
        }
    }

    fn batches(&self) -> &[usize] {
        self.batch.as_deref().unwrap_or(&[1, 2, 4, 8, 16, 32, 64])
    }

    fn protocols(&self) -> Vec<Protocol> {
        self.protocol.map_or(vec![Protocol::Frodo, Protocol::Simple], |protocol| vec![protocol])
    }

    /// Refuses an option that would have no effect.
    fn check(&self) -> Result<(), String> {
        let keyed = matches!(self.what, What::Build | What::Answer);
        for (option, given, taken) in [
            ("--batch", self.batch.is_some(), self.what.has_batches()),
            ("--backend", self.backend != BackendChoice::Cpu, keyed),
            ("--record", self.record.is_some(), matches!(self.what, What::Answer)),
            ("--columns", self.columns.is_some(), self.what.has_columns()),
            ("--protocol", self.protocol.is_some(), keyed || self.what.is_gpu_answers()),
        ] {
            if given && !taken {
                let what = self.what.to_possible_value().expect("none is skipped");
                return Err(format!("{} has no {option}: leave it out", what.get_name()));
            }
        }
        if self.batches().contains(&0) {
            return Err("a batch has at least one query".into());
        }
        match (self.protocol, self.what) {
            (Some(protocol), What::Answer) if has_keys(protocol) => Err(
                "answers under evaluation keys have benchmarks of their own: hush-bench onion, tfhe, packed"
                    .into(),
            ),
            _ => Ok(()),
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(&format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    args.check()?;
    let mut report = Report::new(args.what.columns(), args.json);
    match args.what {
        What::Scan => scan::run(args, &mut report),
        What::Ntt => ntt::run(&mut report),
        What::Build => build::run(args, &mut report),
        What::Answer => answer::run(args, &mut report),
        What::Onion => paths::run(args, paths::onion(), &mut report),
        What::Tfhe => paths::run(args, paths::tfhe(), &mut report),
        What::Packed => paths::run(args, paths::packed(), &mut report),
        What::Plan => planned::run(args, &mut report),
        What::Colpack => paths::run(args, paths::colpack(), &mut report),
        #[cfg(any(feature = "cuda", feature = "emulator"))]
        What::GpuFloors => gpu::floors(&mut report),
        #[cfg(any(feature = "cuda", feature = "emulator"))]
        What::GpuSteps => gpu::steps(args, &mut report),
        #[cfg(any(feature = "cuda", feature = "emulator"))]
        What::GpuThresholds => gpu::thresholds(&mut report),
        #[cfg(any(feature = "cuda", feature = "emulator"))]
        What::GpuAnswers => gpu::answers(args, &mut report),
    }?;
    report.finish()
}

/// Returns whether clients upload evaluation keys.
fn has_keys(protocol: Protocol) -> bool {
    let page = protocol.page();
    let shape = TableShape { columns: 64, blocks: 1, slot_bytes: 8 };
    page.table(page.default_set(shape.slot_bytes), shape).is_ok_and(|table| table.facts().keys.is_some())
}

/// Returns the number of threads: `asked`, or one for every core.
fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Returns the backends of `choice`, with `threads` threads of the CPU. Fails if one cannot be opened.
fn backends(choice: BackendChoice, threads: usize) -> Result<Backends, Box<dyn Error>> {
    Ok(Backends::choose(choice, Arc::new(Cpu::new(threads)?))?)
}

/// Parses a size in bytes, with a suffix K, M or G if there is one. Fails with advice if it is malformed or below 1M.
fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let count: usize = digits.parse().map_err(|_| format!("'{text}' is no size: use 512M or 1G"))?;
    count
        .checked_mul(1 << shift)
        .filter(|&size| size >= 1 << 20)
        .ok_or_else(|| format!("'{text}' is out of range: at least 1M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a command line, and returns the error if there is one.
    fn checked(line: &str) -> Result<(), String> {
        let words = ["hush-bench"].into_iter().chain(line.split_whitespace());
        Args::try_parse_from(words).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn options_without_effect_are_refused() {
        for (whats, option, taken) in [
            ("scan answer", "--batch 3", true),
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            ("gpu-answers", "--batch 3", true),
            ("ntt build onion packed colpack", "--batch 3", false),
            ("build answer", "--backend cuda", true),
            ("scan ntt onion packed colpack", "--backend cuda", false),
            ("tfhe packed colpack", "--columns 64", true),
            ("scan ntt build answer onion", "--columns 64", false),
            ("build answer", "--protocol simple", true),
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            ("gpu-answers", "--protocol onion", true),
            ("scan ntt onion packed colpack", "--protocol simple", false),
        ] {
            for what in whats.split(' ') {
                let said = checked(&format!("{what} {option}"));
                let name = option.split(' ').next().unwrap_or_default();
                let refused = Err(format!("{what} has no {name}: leave it out"));
                assert_eq!(said, if taken { Ok(()) } else { refused });
            }
        }
    }

    #[test]
    fn protocols_with_benchmarks_of_their_own_are_refused() {
        for protocol in ["onion", "tfhe", "hybrid"] {
            let refused = checked(&format!("answer --protocol {protocol}")).unwrap_err();
            assert!(refused.ends_with("hush-bench onion, tfhe, packed"));
        }
        assert_eq!(checked("build --protocol hybrid"), Ok(()));
        assert_eq!(checked("answer --protocol colpack"), Ok(()));
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(["1M", "3g", "1048576"].map(parse_size), [Ok(1 << 20), Ok(3 << 30), Ok(1 << 20)]);
        assert!(["", "M", "1T", "1023K", "99999999999G", "-1"].iter().all(|text| parse_size(text).is_err()));
        assert!(checked("scan --batch 1,0").is_err());
    }
}
