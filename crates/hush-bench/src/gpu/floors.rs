//! The bounds of the GPU: bandwidths and rates of operations, each measured by a kernel that does nothing else.

use std::error::Error;

use hush_cuda::device::{Arg, Buffer, CudaError, Device, Launch};

use super::{Scale, Work, device_seconds};
use crate::{
    report::Report,
    row::{Rate, Row},
};

/// The independent chains of operations of a thread, as in the kernels.
const CHAINS: f64 = 8.0;
/// The bytes of a tile, and the stages, of the bulk copies: about 190 KiB in flight on a multiprocessor.
const BULK: [(u32, u32); 4] = [(32 << 10, 6), (16 << 10, 12), (8 << 10, 24), (4 << 10, 47)];
/// The columns of the products on a Hopper GPU, with their kernels.
const WGMMA: [(u32, &str); 4] = [
    (8, "floor_wgmma_n8_hopper"),
    (32, "floor_wgmma_n32_hopper"),
    (128, "floor_wgmma_n128_hopper"),
    (256, "floor_wgmma_n256_hopper"),
];
/// The products of the cores, with their kernels.
const WORDS: [(&str, &str); 3] = [
    ("word products, all of them", "floor_multiply_wide"),
    ("word products, high halves", "floor_multiply_high"),
    ("word products, low halves", "floor_multiply_low"),
];

/// A rate per second.
type Measured = Result<f64, Box<dyn Error>>;

/// The rates per second with which floors are computed. A rate that could not be measured is infinite: it bounds nothing.
pub(super) struct Floors {
    /// The bytes read from device memory.
    pub(super) read: f64,
    /// The operations on bytes by the tensor cores, 2 a multiply-add.
    pub(super) byte_ops: f64,
    /// The products modulo a prime by the cores.
    pub(super) modular_products: f64,
    /// The multiply-adds of 32 bits with results of 64 by the cores.
    pub(super) multiply_adds: f64,
    /// The bytes copied from the host to the device.
    pub(super) up: f64,
    /// The bytes copied from the device to the host.
    pub(super) down: f64,
}

impl Floors {
    /// Measures all rates, which takes a second or so. `report` gets a row for each rate that could not be measured.
    ///
    /// # Errors
    /// If the device has no memory for the measurements.
    pub(super) fn measure(
        device: &Device,
        scale: &Scale,
        report: &mut Report,
    ) -> Result<Self, Box<dyn Error>> {
        let measured = measure(device, scale, report, |_, _| ())?;
        // The best of several ways counts.
        let best = |what: &str| {
            let rates = measured.iter().filter(|(name, _)| name.starts_with(what));
            rates.map(|&(_, rate)| rate).reduce(f64::max).unwrap_or(f64::INFINITY)
        };
        let words = WORDS.map(|(name, _)| best(name));
        Ok(Self {
            read: best("read"),
            byte_ops: best("byte products"),
            modular_products: one_after_another(words),
            multiply_adds: words[0],
            up: best("upload"),
            down: best("download"),
        })
    }

    /// Returns the row of `work` that took `seconds`, compared with reading its table once. Reads beside the table, like those of
    /// pack columns, do not count there: they would make slow paths look fast.
    pub(super) fn row(&self, row: Row, work: &Work, seconds: f64) -> Row {
        let (bound, floor) = self.longest(work);
        let stream = row.table_bytes.map(|table| table as f64 / self.read);
        Row {
            bytes: Some(work.bytes as u64),
            seconds: Some(seconds),
            floor_seconds: Some(floor),
            bound: Some(bound),
            share: Some(floor / seconds),
            streams: stream.filter(|&stream| stream > 0.0).map(|stream| seconds / stream),
            ..row
        }
    }

    /// Returns the part of `work` that takes longest, and its seconds. Copies share a queue with each other; other parts overlap.
    pub(super) fn longest(&self, work: &Work) -> (&'static str, f64) {
        let cores = work.modular_products / self.modular_products + work.multiply_adds / self.multiply_adds;
        let parts = [
            ("memory", work.bytes / self.read),
            ("tensor", work.byte_ops / self.byte_ops),
            ("cores", cores),
            ("copy", work.up / self.up + work.down / self.down),
        ];
        parts.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("there are four")
    }
}

/// Returns the rate of work that takes one operation of each of `rates`, one after another:
///
/// ```text
/// 1 / (1 / rates[0] + 1 / rates[1] + 1 / rates[2])
/// ```
fn one_after_another(rates: [f64; 3]) -> f64 {
    1.0 / rates.into_iter().map(f64::recip).sum::<f64>()
}

/// Measures all rates, with a row each.
///
/// # Errors
/// If the device has no memory for the measurements.
pub(super) fn run(device: &Device, scale: &Scale, report: &mut Report) -> Result<(), Box<dyn Error>> {
    measure(device, scale, report, |report, row| report.push(&row)).map(drop)
}

/// Measures all rates. Returns the name and the value of each, after `each` has got its row.
fn measure(
    device: &Device,
    scale: &Scale,
    report: &mut Report,
    each: impl Fn(&mut Report, Row),
) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let probe = Probe::new(device, scale)?;
    let mut measured = Vec::new();
    let mut take = |name: String, unit, measure: &dyn Fn() -> Measured| {
        let row = Row::named(&name);
        if device.lost().is_none()
            && let Some(rate) = report.keep(&row, measure())
        {
            each(report, Row { rate: Some(Rate { rate, unit }), ..row });
            measured.push((name, rate));
        }
    };
    take("read, 16 bytes a load".into(), "B/s", &|| probe.loads());
    if device.is_hopper() {
        for (tile, stages) in BULK {
            let name = format!("read, {stages} bulk copies of {tile} bytes");
            take(name, "B/s", &|| probe.bulk(tile, stages));
        }
        for (columns, kernel) in WGMMA {
            let name = format!("byte products, 64 x 32 by 32 x {columns}");
            take(name, "op/s", &|| probe.wgmma(columns, kernel));
        }
    }
    take("byte products, 16 x 32 by 32 x 8".into(), "op/s", &|| probe.mma());
    for (name, kernel) in WORDS {
        take(name.into(), "op/s", &|| probe.words(kernel));
    }
    take("upload".into(), "B/s", &|| probe.upload());
    take("download".into(), "B/s", &|| probe.download());
    Ok(measured)
}

/// A device, with the buffers that the kernels read and write.
struct Probe<'a> {
    device: &'a Device,
    scale: &'a Scale,
    table: Buffer<u32>,
    out: Buffer<u32>,
}

impl<'a> Probe<'a> {
    fn new(device: &'a Device, scale: &'a Scale) -> Result<Self, CudaError> {
        let bytes = scale.read_bytes.min(device.free_bytes()? / 2);
        let table = device.alloc(bytes / size_of::<u32>() / (1 << 20) * (1 << 20))?;
        hush_cuda::fill_random(device, &table.slice(..), 1, 0)?;
        Ok(Self { device, scale, table, out: device.zeroed(1)? })
    }

    fn multiprocessors(&self) -> u32 {
        self.device.info().multiprocessors
    }

    fn bytes(&self) -> f64 {
        (size_of::<u32>() * self.table.len()) as f64
    }

    /// Launches `kernel`, and returns its `work` per second.
    fn rate(&self, work: f64, kernel: &'static str, launch: Launch, args: &[Arg<'_>]) -> Measured {
        let seconds = device_seconds(self.device, self.scale.runs, || {
            // SAFETY: the arguments are what the kernel's comment asks for, and the buffers are the probe's.
            unsafe { self.device.launch_kernel(kernel, launch, args) }
        })?;
        Ok(work / seconds)
    }

    fn loads(&self) -> Measured {
        let units = (self.table.len() / 4) as u64;
        let launch = Launch::new(4 * self.multiprocessors(), 512);
        let args = [(&self.table).into(), units.into(), (&self.out).into()];
        self.rate(self.bytes(), "floor_read", launch, &args)
    }

    fn bulk(&self, tile: u32, stages: u32) -> Measured {
        let tiles = (self.bytes() / f64::from(tile)) as u32;
        let shared = (stages * (tile + 8)) as usize;
        let launch = Launch::new(self.multiprocessors(), 32).shared(shared);
        let args = [(&self.table).into(), tiles.into(), tile.into(), stages.into(), (&self.out).into()];
        self.rate(self.bytes(), "floor_bulk_hopper", launch, &args)
    }

    fn wgmma(&self, columns: u32, kernel: &'static str) -> Measured {
        // The warpgroups of a multiprocessor. Each waits for its own products, and it takes many to hide that for narrow ones.
        let each = if columns < 128 { 8 } else { 2 };
        let blocks = each * self.multiprocessors();
        let work = 2.0 * 64.0 * 32.0 * f64::from(columns) * f64::from(self.scale.rounds) * f64::from(blocks);
        let launch = Launch::new(blocks, 128).shared(((64 + columns) * 128) as usize);
        self.rate(work, kernel, launch, &[self.scale.rounds.into(), (&self.out).into()])
    }

    fn mma(&self) -> Measured {
        let launch = Launch::new(4 * self.multiprocessors(), 256);
        let warps = f64::from(launch.grid[0] * launch.block / 32);
        let work = 2.0 * 16.0 * 8.0 * 32.0 * CHAINS * f64::from(self.scale.rounds) * warps;
        self.rate(work, "floor_mma", launch, &[self.scale.rounds.into(), (&self.out).into()])
    }

    fn words(&self, kernel: &'static str) -> Measured {
        let launch = Launch::new(4 * self.multiprocessors(), 512);
        let work = CHAINS * f64::from(self.scale.rounds) * f64::from(launch.grid[0] * launch.block);
        self.rate(work, kernel, launch, &[self.scale.rounds.into(), (&self.out).into()])
    }

    /// Returns the words of the table that are copied.
    fn copied(&self) -> usize {
        self.scale.copy_bytes.min(size_of::<u32>() * self.table.len()) / size_of::<u32>()
    }

    /// Measures copies to the device, from memory of the host that is not pinned.
    fn upload(&self) -> Measured {
        let host = vec![1u32; self.copied()];
        let part = self.table.slice(..host.len());
        let seconds = device_seconds(self.device, self.scale.runs, || self.device.upload_into(&host, &part))?;
        Ok(size_of_val(&host[..]) as f64 / seconds)
    }

    /// Measures copies from the device, to memory of the host that is not pinned, and was written before.
    fn download(&self) -> Measured {
        let mut host = vec![1u32; self.copied()];
        let part = self.table.slice(..host.len());
        let bytes = size_of_val(&host[..]);
        let seconds =
            device_seconds(self.device, self.scale.runs, || self.device.download_into(&part, &mut host))?;
        Ok(bytes as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOORS: Floors =
        Floors { read: 1.0, byte_ops: 2.0, modular_products: 4.0, multiply_adds: 8.0, up: 16.0, down: 32.0 };

    #[test]
    fn the_longest_part_is_the_floor() {
        let nothing = Work::default();
        for (work, expected) in [
            (Work { bytes: 3.0, byte_ops: 5.0, ..nothing }, ("memory", 3.0)),
            (Work { bytes: 2.0, byte_ops: 5.0, ..nothing }, ("tensor", 2.5)),
            (Work { modular_products: 4.0, multiply_adds: 8.0, bytes: 1.5, ..nothing }, ("cores", 2.0)),
            (Work { up: 16.0, down: 16.0, bytes: 1.25, ..nothing }, ("copy", 1.5)),
        ] {
            assert_eq!(FLOORS.longest(&work), expected);
        }
    }

    #[test]
    fn a_pass_is_compared_with_the_table_alone() {
        let work = Work { bytes: 30.0, ..Work::default() };
        let streams = |row| FLOORS.row(row, &work, 60.0).streams;
        assert_eq!(streams(Row::named("answer").table(20)), Some(3.0));
        assert_eq!([streams(Row::named("expand")), streams(Row::named("answer").table(0))], [None, None]);
    }

    #[test]
    fn a_modular_product_takes_three_operations() {
        assert_eq!(one_after_another([4.0, 4.0, 2.0]), 1.0);
        assert_eq!(one_after_another([4.0, f64::INFINITY, 4.0]), 2.0);
    }

    #[test]
    fn what_was_not_measured_bounds_nothing() {
        let floors = Floors { read: f64::INFINITY, ..FLOORS };
        assert_eq!(floors.longest(&Work { bytes: 100.0, byte_ops: 1.0, ..Work::default() }), ("tensor", 0.5));
    }
}
