//! What the GPU does at most: bandwidths and rates of operations, each measured by a kernel that does nothing else.

use std::error::Error;

use hush_cuda::device::{Buffer, CudaError, Device, Launch};

use super::{
    Scale, device_seconds,
    row::{Rate, Table},
};

/// Independent chains of operations a thread, as the kernels have them.
const CHAINS: f64 = 8.0;
/// Tiles and stages of the bulk copies: about 190 KiB in flight a multiprocessor.
const BULK: [(u32, u32); 4] = [(32 << 10, 6), (16 << 10, 12), (8 << 10, 24), (4 << 10, 47)];
/// Columns of the products on a Hopper GPU.
const WGMMA: [(u32, &str); 4] = [
    (8, "floor_wgmma_n8_hopper"),
    (32, "floor_wgmma_n32_hopper"),
    (128, "floor_wgmma_n128_hopper"),
    (256, "floor_wgmma_n256_hopper"),
];

/// The rates that floors are computed with, a second.
pub(super) struct Floors {
    /// Bytes read from device memory.
    pub(super) read: f64,
    /// Operations on bytes by the tensor cores, 2 a multiply-add.
    pub(super) byte_ops: f64,
    /// Multiply-adds of 32 bits with results of 64 by the cores.
    pub(super) word_ops: f64,
    /// Bytes copied between host and device, the slower way.
    pub(super) copy: f64,
}

impl Floors {
    /// Measures them: a second or so.
    pub(super) fn measure(device: &Device, scale: &Scale) -> Result<Self, Box<dyn Error>> {
        let probe = Probe::new(device, scale)?;
        let byte_ops = if device.is_hopper() { probe.wgmma(256, WGMMA[3].1)? } else { probe.mma()? };
        let (up, down) = probe.copies()?;
        Ok(Self {
            read: probe.best_read()?,
            byte_ops,
            word_ops: probe.words("floor_multiply_wide")?,
            copy: up.min(down),
        })
    }
}

/// All rates.
pub(super) fn run(device: &Device, scale: &Scale, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let probe = Probe::new(device, scale)?;
    let mut rate = |name: String, rate: f64, unit: &'static str| table.rate(&Rate { name, rate, unit });
    rate("read, 16 bytes a load".into(), probe.read()?, "B/s");
    if device.is_hopper() {
        for (tile, stages) in BULK {
            rate(format!("read, {stages} bulk copies of {tile} bytes"), probe.bulk(tile, stages)?, "B/s");
        }
        for (columns, kernel) in WGMMA {
            rate(format!("byte products, 64 x 32 by 32 x {columns}"), probe.wgmma(columns, kernel)?, "op/s");
        }
    }
    rate("byte products, 16 x 32 by 32 x 8".into(), probe.mma()?, "op/s");
    for (name, kernel) in [
        ("32 x 32 + 64 bits", "floor_multiply_wide"),
        ("high half of 32 x 32 bits", "floor_multiply_high"),
        ("low half of 32 x 32 + 32 bits", "floor_multiply_low"),
    ] {
        rate(format!("word products, {name}"), probe.words(kernel)?, "op/s");
    }
    let (up, down) = probe.copies()?;
    rate("upload".into(), up, "B/s");
    rate("download".into(), down, "B/s");
    Ok(())
}

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

    /// Launches `kernel` and returns `work` a second.
    fn rate(
        &self,
        work: f64,
        kernel: &'static str,
        launch: Launch,
        args: &[hush_cuda::device::Arg<'_>],
    ) -> Result<f64, Box<dyn Error>> {
        // SAFETY: the arguments are what the kernel's comment asks for, and the buffers are the probe's.
        let launched = || unsafe { self.device.launch_kernel(kernel, launch, args) };
        Ok(work / device_seconds(self.device, self.scale.runs, launched)?)
    }

    fn read(&self) -> Result<f64, Box<dyn Error>> {
        let units = (self.table.len() / 4) as u64;
        let launch = Launch::new(4 * self.multiprocessors(), 512);
        let args = [(&self.table).into(), units.into(), (&self.out).into()];
        self.rate(self.bytes(), "floor_read", launch, &args)
    }

    fn bulk(&self, tile: u32, stages: u32) -> Result<f64, Box<dyn Error>> {
        let tiles = (self.bytes() / f64::from(tile)) as u32;
        let shared = (stages * (tile + 8)) as usize;
        let launch = Launch::new(self.multiprocessors(), 32).shared(shared);
        let args = [(&self.table).into(), tiles.into(), tile.into(), stages.into(), (&self.out).into()];
        self.rate(self.bytes(), "floor_bulk_hopper", launch, &args)
    }

    fn best_read(&self) -> Result<f64, Box<dyn Error>> {
        let read = self.read()?;
        if self.device.is_hopper() { Ok(read.max(self.bulk(BULK[0].0, BULK[0].1)?)) } else { Ok(read) }
    }

    fn wgmma(&self, columns: u32, kernel: &'static str) -> Result<f64, Box<dyn Error>> {
        // Warpgroups of a multiprocessor: of narrow products it takes many to hide that each waits for its own.
        let each = if columns < 128 { 8 } else { 2 };
        let blocks = each * self.multiprocessors();
        let work = 2.0 * 64.0 * 32.0 * f64::from(columns) * f64::from(self.scale.rounds) * f64::from(blocks);
        let launch = Launch::new(blocks, 128).shared(((64 + columns) * 128) as usize);
        self.rate(work, kernel, launch, &[self.scale.rounds.into(), (&self.out).into()])
    }

    fn mma(&self) -> Result<f64, Box<dyn Error>> {
        let launch = Launch::new(4 * self.multiprocessors(), 256);
        let warps = f64::from(launch.grid[0] * launch.block / 32);
        let work = 2.0 * 16.0 * 8.0 * 32.0 * CHAINS * f64::from(self.scale.rounds) * warps;
        self.rate(work, "floor_mma", launch, &[self.scale.rounds.into(), (&self.out).into()])
    }

    fn words(&self, kernel: &'static str) -> Result<f64, Box<dyn Error>> {
        let launch = Launch::new(4 * self.multiprocessors(), 512);
        let work = CHAINS * f64::from(self.scale.rounds) * f64::from(launch.grid[0] * launch.block);
        self.rate(work, kernel, launch, &[self.scale.rounds.into(), (&self.out).into()])
    }

    /// Bytes a second to the device and from it, from and to memory of the host that is not pinned.
    fn copies(&self) -> Result<(f64, f64), Box<dyn Error>> {
        let words = self.scale.copy_bytes.min(size_of::<u32>() * self.table.len()) / size_of::<u32>();
        let (host, part) = (vec![1u32; words], self.table.slice(..words));
        let bytes = (size_of::<u32>() * words) as f64;
        let up = device_seconds(self.device, self.scale.runs, || self.device.upload_into(&host, &part))?;
        let down = device_seconds(self.device, self.scale.runs, || self.device.download(&part).map(drop))?;
        Ok((bytes / up, bytes / down))
    }
}
