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
mod planned;
mod probe;
mod report;
mod row;
mod scan;
mod served;
mod subject;
mod table_files;
mod timing;

use std::{
    env,
    error::Error,
    num::NonZeroUsize,
    process::ExitCode,
    sync::Arc,
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::{Parser, ValueEnum};
use hush_cpu::Cpu;
use hush_engine::{BackendChoice, Backends, MemoryChoice};
use hush_protocol::{Protocol, facts::DbForm, keyword::FilterKind};

use report::{Column, Report};
use row::{Row, Run};
use subject::{Subject, VALUE_BYTES};

/// A benchmark.
#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// The fold over random bytes, for every shape, thread count and batch.
    Scan,
    /// The negacyclic transforms of one polynomial, one thread.
    Ntt,
    /// The hint of a square table, for both structures of the public matrix.
    Hint,
    /// The build of a table, stage by stage.
    Build,
    /// A table: its build, the work of a client, and whole answers.
    Answer,
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
    /// Returns whether the caller describes tables that are built.
    fn has_tables(self) -> bool {
        matches!(self, Self::Build | Self::Answer)
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
    /// Protocols of the tables of `build`, `answer` and `gpu-answers`: a table for each; colpack, or all of those that
    /// `gpu-answers` measures by default, if not given.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    protocol: Vec<Protocol>,
    /// Parameter set of the tables; the default one of each protocol if not given.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Key filters of the tables: a table for each; tables by index if not given.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    filter: Vec<FilterKind>,
    /// Form in which plaintexts are stored, where the protocol has a choice: evaluation or symbols.
    #[arg(long, value_name = "FORM")]
    form: Option<DbForm>,
    /// Records of a table; as many as fit --size if not given.
    #[arg(long, value_name = "N", conflicts_with = "size")]
    records: Option<NonZeroUsize>,
    /// Bytes of a value [default: 1024].
    #[arg(long, value_name = "BYTES")]
    value_bytes: Option<NonZeroUsize>,
    /// Columns (D0) of the tables; what is cheapest if not given.
    #[arg(long, value_name = "N")]
    columns: Option<NonZeroUsize>,
    /// Threads; one, and one for every core, if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// The backend of `build` and `answer`: cpu, cuda or auto
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    backend: BackendChoice,
    /// Where `answer` has scanned files: resident, mapped or auto
    #[arg(long, value_name = "CHOICE", default_value = "resident")]
    memory: MemoryChoice,
    /// Batch sizes of `scan`, `answer` (1, 2, 4, 8, 16, 32 and 64 if not given) and `gpu-answers` (1, 8, 32 and 64).
    #[arg(long, value_name = "B,..", value_delimiter = ',')]
    batch: Option<Vec<usize>>,
    /// Measure each step of an answer by itself, too.
    #[arg(long)]
    steps: bool,
    /// Measure look-ups over loopback HTTP, too.
    #[arg(long)]
    http: bool,
    /// Measure an answer of the table in parts of these weights, too, such as 2,2,1,2,1.
    #[arg(long, value_name = "W,..", value_delimiter = ',')]
    parts: Option<Vec<u32>>,
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

    /// Returns the tables that the caller describes: one for each protocol and key filter. Fails if a value does not fit `size`.
    fn subjects(&self) -> Result<Vec<Subject>, String> {
        let protocols = if self.protocol.is_empty() { &[Protocol::Colpack][..] } else { &self.protocol };
        let filters: Vec<_> = match &self.filter[..] {
            [] => vec![None],
            filters => filters.iter().copied().map(Some).collect(),
        };
        let value_bytes = self.value_bytes.map_or(VALUE_BYTES, NonZeroUsize::get);
        let records = self.records.map_or(self.size / value_bytes, NonZeroUsize::get);
        if records == 0 {
            return Err(format!("no value of {value_bytes} bytes fits {} bytes: raise --size", self.size));
        }
        let mut subjects = Vec::new();
        for &protocol in protocols {
            for &filter in &filters {
                subjects.push(Subject {
                    preset: self.preset.clone(),
                    filter,
                    form: self.form,
                    columns: self.columns.map(NonZeroUsize::get),
                    records,
                    ..Subject::by_index(protocol, self.size, value_bytes)
                });
            }
        }
        Ok(subjects)
    }

    /// Refuses an option that would have no effect.
    fn check(&self) -> Result<(), String> {
        let tables = self.what.has_tables();
        let answer = matches!(self.what, What::Answer);
        for (option, given, taken) in [
            ("--batch", self.batch.is_some(), self.what.has_batches()),
            ("--backend", self.backend != BackendChoice::Cpu, tables),
            ("--protocol", !self.protocol.is_empty(), tables || self.what.is_gpu_answers()),
            ("--columns", self.columns.is_some(), tables || self.what.is_gpu_answers()),
            ("--preset", self.preset.is_some(), tables || self.what.is_gpu_answers()),
            ("--filter", !self.filter.is_empty(), tables),
            ("--form", self.form.is_some(), tables),
            ("--records", self.records.is_some(), tables),
            ("--value-bytes", self.value_bytes.is_some(), tables),
            ("--memory", self.memory != MemoryChoice::Resident, answer),
            ("--steps", self.steps, answer),
            ("--http", self.http, answer),
            ("--parts", self.parts.is_some(), answer),
        ] {
            if given && !taken {
                let what = self.what.to_possible_value().expect("none is skipped");
                return Err(format!("{} has no {option}: leave it out", what.get_name()));
            }
        }
        if self.batches().contains(&0) {
            return Err("a batch has at least one query".into());
        }
        if self.parts.as_ref().is_some_and(|weights| weights.iter().all(|&weight| weight == 0)) {
            return Err("parts of weight 0 alone have nothing of the table: use 2,2,1,2,1".into());
        }
        Ok(())
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
    report.push(&this_run()?);
    match args.what {
        What::Scan => scan::run(args, &mut report),
        What::Ntt => ntt::run(&mut report),
        What::Hint => build::hints(args, &mut report),
        What::Build => build::run(args, &mut report),
        What::Answer => answer::run(args, &mut report),
        What::Plan => planned::run(args, &mut report),
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

/// Returns the first row: the machine, the time, and the command without the path of the program.
fn this_run() -> Result<Row, Box<dyn Error>> {
    let variable = env::var("HUSH_CPU").map(|level| format!("HUSH_CPU={level} ")).unwrap_or_default();
    let words: Vec<_> = env::args().skip(1).collect();
    let run = Run {
        command: format!("{variable}hush-bench {}", words.join(" ")),
        machine: hush_engine::cpu_model(),
        cores: threads(None),
        level: Cpu::new(1)?.level().name(),
        unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(Row { run: Some(run), ..Row::named("run") })
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
            ("ntt build hint plan", "--batch 3", false),
            ("build answer", "--backend cuda", true),
            ("scan ntt hint plan", "--backend cuda", false),
            ("build answer", "--columns 64", true),
            ("scan ntt hint", "--columns 64", false),
            ("build answer", "--protocol simple,frodo", true),
            ("build answer", "--filter fuse3,band64", true),
            ("scan ntt", "--filter fuse3", false),
            ("build answer", "--records 8", true),
            ("answer", "--steps", true),
            ("build", "--steps", false),
            ("answer", "--parts 2,1", true),
            ("scan build", "--http", false),
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            ("gpu-answers", "--protocol onion", true),
            ("scan ntt", "--protocol simple", false),
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
    fn every_protocol_and_filter_is_a_table() {
        let line = "hush-bench answer --protocol frodo,simple --filter fuse3,fuse4 --records 65536 --value-bytes 1024";
        let subjects = Args::parse_from(line.split(' ')).subjects().unwrap();
        let tables: Vec<_> = subjects.iter().map(|table| (table.protocol, table.filter)).collect();
        let [frodo, simple] = [Protocol::Frodo, Protocol::Simple];
        let [fuse3, fuse4] = [Some(FilterKind::Fuse3), Some(FilterKind::Fuse4)];
        assert_eq!(tables, [(frodo, fuse3), (frodo, fuse4), (simple, fuse3), (simple, fuse4)]);
        assert!(subjects.iter().all(|table| table.records == 65536 && table.value_bytes == 1024));
        let line = "hush-bench answer --size 1M --value-bytes 2000000";
        assert!(Args::parse_from(line.split(' ')).subjects().unwrap_err().ends_with("raise --size"));
        assert!(checked("answer --parts 0,0").is_err());
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(["1M", "3g", "1048576"].map(parse_size), [Ok(1 << 20), Ok(3 << 30), Ok(1 << 20)]);
        assert!(["", "M", "1T", "1023K", "99999999999G", "-1"].iter().all(|text| parse_size(text).is_err()));
        assert!(checked("scan --batch 1,0").is_err());
    }
}
