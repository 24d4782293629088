//! The scale of measurements: enough to keep a GPU busy, or the least that runs every line in the emulator, for tests.

use hush_he::params::{
    COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_RING_N256,
    INSECURE_TFHE_N256, ONION_M31, PACK_M31, PackParams, RingParams, TFHE_COMPACT, TfheParams,
};

/// The sizes and parameter sets of all measurements.
pub(super) struct Scale {
    /// The number of runs of which the median counts.
    pub(super) runs: usize,
    /// The most bytes on which bandwidths are measured, many times what caches hold. Half of the memory may be less.
    pub(super) read_bytes: usize,
    /// The most bytes of the copies between host and device.
    pub(super) copy_bytes: usize,
    /// The rounds of a kernel of operations, a multiple of 4.
    pub(super) rounds: u32,
    /// The batches of the fold.
    pub(super) fold_batches: &'static [usize],
    /// The batches of everything else.
    pub(super) batches: &'static [usize],
    /// The batches by which kernels are compared for thresholds, and the bytes of the table.
    pub(super) threshold_batches: &'static [usize],
    pub(super) threshold_bytes: usize,
    /// The columns (D0) of tables of bytes.
    pub(super) columns: usize,
    /// The plaintexts of the largest table whose hint is packed.
    pub(super) widest_columns: usize,
    /// The polynomials of the transforms.
    pub(super) polys: usize,
    pub(super) column: ColumnParams,
    pub(super) pack: PackParams,
    pub(super) onion: RingParams,
    pub(super) tfhe: TfheParams,
}

/// The scale of a GPU, with the default sets.
pub(super) const GPU: Scale = Scale {
    runs: 5,
    read_bytes: 8 << 30,
    copy_bytes: 256 << 20,
    rounds: 1 << 15,
    fold_batches: &[1, 2, 4, 8, 16, 32, 64],
    batches: &[1, 8, 32, 64],
    threshold_batches: &[1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 40, 48, 64],
    threshold_bytes: 16 << 30,
    columns: 1 << 16,
    widest_columns: 256,
    polys: 1000,
    column: COLPACK_N2048_Q52,
    pack: PACK_M31,
    onion: ONION_M31,
    tfhe: TFHE_COMPACT,
};

/// The scale of the emulator.
pub(super) const EMULATOR: Scale = Scale {
    runs: 1,
    read_bytes: 4 << 20,
    copy_bytes: 1 << 20,
    rounds: 4,
    fold_batches: &[1, 2, 5],
    batches: &[1, 2],
    threshold_batches: &[1, 2, 5],
    threshold_bytes: 1 << 20,
    columns: 1 << 14,
    widest_columns: 2,
    polys: 2,
    column: INSECURE_COLPACK_N256,
    pack: INSECURE_PACK_N256,
    onion: INSECURE_RING_N256,
    tfhe: INSECURE_TFHE_N256,
};
