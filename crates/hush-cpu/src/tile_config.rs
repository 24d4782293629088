//! The configuration of the AMX tile registers.
#![cfg(target_arch = "x86_64")]

use std::arch::asm;

/// The most rows of a tile register.
pub(crate) const TILE_REGISTER_ROWS: usize = 16;
/// The most bytes of a row of a tile register.
pub(crate) const TILE_REGISTER_ROW_BYTES: usize = 64;

/// The memory operand of `ldtilecfg`, palette 1. Tiles that are not set have no rows.
#[repr(C, align(64))]
pub(crate) struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl TileConfig {
    /// Creates a configuration of no tiles.
    pub(crate) fn new() -> Self {
        Self { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] }
    }

    /// Configures `tiles` as `rows x row_bytes` bytes, at most 16 x 64.
    pub(crate) fn with(mut self, tiles: std::ops::Range<usize>, rows: usize, row_bytes: usize) -> Self {
        debug_assert!(rows <= TILE_REGISTER_ROWS && row_bytes <= TILE_REGISTER_ROW_BYTES);
        self.rows[tiles.clone()].fill(rows as u8);
        self.row_bytes[tiles].fill(row_bytes as u16);
        self
    }

    /// Configures the tiles of the calling thread, which are zero then.
    ///
    /// # Safety
    /// The CPU must have AMX, and this process the permission to use it.
    pub(crate) unsafe fn load(&self) {
        // SAFETY: reads the 64 bytes of `self`; the caller promises that the CPU has AMX.
        unsafe { asm!("ldtilecfg [{}]", in(reg) self, options(nostack, preserves_flags)) };
    }
}

/// Releases the tiles of the calling thread.
///
/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
pub(crate) unsafe fn release_tiles() {
    // SAFETY: the caller promises that the CPU has AMX.
    unsafe { asm!("tilerelease", options(nostack, preserves_flags)) };
}
