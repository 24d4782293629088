//! An emulator of the AMX instructions, so that the machine code of an AMX kernel is tested on any x86-64 machine.
//!
//! A CPU without AMX raises the illegal-instruction signal. The handler decodes the instruction, executes it on tile
//! registers of the thread's own, and continues behind it. Semantics and the checks that make an instruction fault
//! are those of the Intel SDM, volume 2 (LDTILECFG, TILELOADD, TDPBSUD and their kin).
#![cfg(target_arch = "x86_64")]

use std::{cell::Cell, mem::MaybeUninit, ptr, sync::Once};

const ROWS: usize = 16;
const ROW_BYTES: usize = 64;
const TILES: usize = 8;

/// Catches illegal instructions of this process from now on and executes those that are AMX 8-bit instructions.
/// Any other one ends the process with the signal, as without the emulator.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: all-zero bytes are a valid `sigaction`; the handler has the signature that SA_SIGINFO asks for.
        let result = unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = handle as *const () as usize;
            // On the thread's own stack: the alternative one may be too small for copies of tiles.
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGILL, &action, ptr::null_mut())
        };
        assert_eq!(result, 0, "the handler of SIGILL is set");
    });
}

/// The tile registers of a thread. `rows` is 0 for a tile that is not configured.
#[derive(Clone, Copy)]
struct Tiles {
    config: [u8; 64],
    rows: [usize; TILES],
    row_bytes: [usize; TILES],
    data: [[[u8; ROW_BYTES]; ROWS]; TILES],
}

const NO_TILES: Tiles =
    Tiles { config: [0; 64], rows: [0; TILES], row_bytes: [0; TILES], data: [[[0; ROW_BYTES]; ROWS]; TILES] };

thread_local! {
    // Initialised by a constant and without a destructor: reading it in a signal handler runs no other code.
    static THREAD_TILES: Cell<Tiles> = const { Cell::new(NO_TILES) };
}

/// The registers of the interrupted code, by their number in an instruction.
struct Registers<'a>(&'a libc::mcontext_t);

impl Registers<'_> {
    fn get(&self, number: u8) -> usize {
        const NAMES: [libc::c_int; 16] = [
            libc::REG_RAX,
            libc::REG_RCX,
            libc::REG_RDX,
            libc::REG_RBX,
            libc::REG_RSP,
            libc::REG_RBP,
            libc::REG_RSI,
            libc::REG_RDI,
            libc::REG_R8,
            libc::REG_R9,
            libc::REG_R10,
            libc::REG_R11,
            libc::REG_R12,
            libc::REG_R13,
            libc::REG_R14,
            libc::REG_R15,
        ];
        self.0.gregs[NAMES[usize::from(number)] as usize] as usize
    }
}

/// The signal handler.
extern "C" fn handle(_signal: libc::c_int, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a `ucontext_t` that lives until the handler returns.
    let machine = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    let start = machine.gregs[libc::REG_RIP as usize] as usize;
    // SAFETY: the CPU fetched an instruction from here. None is longer than 15 bytes, and code is followed by more
    // code or by the padding of its page.
    let code = unsafe { *ptr::with_exposed_provenance::<[u8; 15]>(start) };
    let registers = Registers(machine);
    // SAFETY: the handler is not interrupted by itself, so this is the only reference to the thread's tiles.
    let tiles = unsafe { &mut *THREAD_TILES.with(Cell::as_ptr) };
    let executed = Instruction::decode(&code, start, &registers)
        // SAFETY: the operands are what the interrupted code passed to the instruction, which it asserts is valid.
        .and_then(|(instruction, length)| unsafe { instruction.execute(tiles) }.map(|()| length));
    match executed {
        Ok(length) => machine.gregs[libc::REG_RIP as usize] += length as i64,
        Err(reason) => give_up(reason),
    }
}

/// Says why and restores the default action: the instruction is then met again, and ends the process.
fn give_up(reason: &str) {
    for text in ["AMX emulator: ", reason, "\n"] {
        // SAFETY: writes the bytes of a string; `write` may be called in a signal handler.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
    // SAFETY: `signal` may be called in a signal handler.
    unsafe { libc::signal(libc::SIGILL, libc::SIG_DFL) };
}

/// A decoded instruction with its operands.
enum Instruction {
    LoadConfig { from: usize },
    StoreConfig { to: usize },
    Release,
    Zero { tile: usize },
    Load { tile: usize, from: usize, stride: usize },
    Store { tile: usize, to: usize, stride: usize },
    Multiply { sum: usize, a: usize, b: usize, a_signed: bool, b_signed: bool },
}

/// The mandatory prefix of a VEX instruction.
#[derive(Clone, Copy, PartialEq)]
enum Prefix {
    None,
    P66,
    F3,
    F2,
}

impl Instruction {
    /// Decodes the bytes at `start`; returns the length too.
    fn decode(
        code: &[u8; 15],
        start: usize,
        registers: &Registers<'_>,
    ) -> Result<(Self, usize), &'static str> {
        let [0xc4, vex1, vex2, opcode, modrm, ..] = *code else { return Err("not a 3-byte VEX instruction") };
        if vex1 & 0x1f != 2 || vex2 & 0x84 != 0 {
            return Err("not VEX.128.0F38.W0");
        }
        let prefix = [Prefix::None, Prefix::P66, Prefix::F3, Prefix::F2][usize::from(vex2 & 3)];
        let source = usize::from(!vex2 >> 3 & 0xf);
        let reg = usize::from(modrm >> 3 & 7);
        let rm = usize::from(modrm & 7);
        if modrm >> 6 == 3 {
            let instruction = match (opcode, prefix) {
                (0x49, Prefix::None) if modrm == 0xc0 => Self::Release,
                (0x49, Prefix::F2) if rm == 0 => Self::Zero { tile: reg },
                (0x5e, _) if source < TILES => Self::Multiply {
                    sum: reg,
                    a: rm,
                    b: source,
                    a_signed: matches!(prefix, Prefix::F2 | Prefix::F3),
                    b_signed: matches!(prefix, Prefix::F2 | Prefix::P66),
                },
                _ => return Err("not an AMX instruction between registers"),
            };
            return Ok((instruction, 5));
        }
        let memory = Memory::decode(code, start, vex1, registers)?;
        let address = memory.base;
        let stride = memory.index;
        let instruction = match (opcode, prefix) {
            (0x49, Prefix::None) if reg == 0 => Self::LoadConfig { from: address.wrapping_add(stride) },
            (0x49, Prefix::P66) if reg == 0 => Self::StoreConfig { to: address.wrapping_add(stride) },
            (0x4b, Prefix::F2 | Prefix::P66) if rm == 4 => Self::Load { tile: reg, from: address, stride },
            (0x4b, Prefix::F3) if rm == 4 => Self::Store { tile: reg, to: address, stride },
            _ => return Err("not an AMX instruction with a memory operand"),
        };
        Ok((instruction, memory.length))
    }

    /// # Safety
    /// The memory operand must be as valid as the instruction needs it.
    unsafe fn execute(self, tiles: &mut Tiles) -> Result<(), &'static str> {
        match self {
            Self::LoadConfig { from } => {
                // SAFETY: the operand of LDTILECFG is 64 readable bytes, says the caller.
                tiles.configure(unsafe { ptr::with_exposed_provenance::<[u8; 64]>(from).read_unaligned() })
            }
            Self::StoreConfig { to } => {
                // SAFETY: the operand of STTILECFG is 64 writable bytes, says the caller.
                unsafe { ptr::with_exposed_provenance_mut::<[u8; 64]>(to).write_unaligned(tiles.config) };
                Ok(())
            }
            Self::Release => {
                *tiles = NO_TILES;
                Ok(())
            }
            Self::Zero { tile } => {
                tiles.shape(tile)?;
                tiles.data[tile] = NO_TILES.data[tile];
                Ok(())
            }
            Self::Load { tile, from, stride } => {
                let (rows, row_bytes) = tiles.shape(tile)?;
                tiles.data[tile] = NO_TILES.data[tile];
                for (row, data) in tiles.data[tile][..rows].iter_mut().enumerate() {
                    let at = ptr::with_exposed_provenance(from.wrapping_add(row.wrapping_mul(stride)));
                    // SAFETY: every row of the operand is readable, says the caller.
                    unsafe { ptr::copy_nonoverlapping(at, data.as_mut_ptr(), row_bytes) };
                }
                Ok(())
            }
            Self::Store { tile, to, stride } => {
                let (rows, row_bytes) = tiles.shape(tile)?;
                for (row, data) in tiles.data[tile][..rows].iter().enumerate() {
                    let at = ptr::with_exposed_provenance_mut(to.wrapping_add(row.wrapping_mul(stride)));
                    // SAFETY: every row of the operand is writable, says the caller.
                    unsafe { ptr::copy_nonoverlapping(data.as_ptr(), at, row_bytes) };
                }
                Ok(())
            }
            Self::Multiply { sum, a, b, a_signed, b_signed } => tiles.multiply(sum, a, b, a_signed, b_signed),
        }
    }
}

/// A memory operand.
struct Memory {
    /// Base register and displacement.
    base: usize,
    /// Index register times its scale.
    index: usize,
    /// Length of the whole instruction.
    length: usize,
}

impl Memory {
    fn decode(
        code: &[u8; 15],
        start: usize,
        vex1: u8,
        registers: &Registers<'_>,
    ) -> Result<Self, &'static str> {
        let mode = code[4] >> 6;
        let rm = code[4] & 7;
        let extend = |bit: u8| if vex1 & bit == 0 { 8 } else { 0 };
        let extend_index = extend(0x40);
        let extend_base = extend(0x20);
        let mut at = 5;
        let mut base_number = rm;
        let mut index = 0;
        if rm == 4 {
            let sib = code[at];
            at += 1;
            base_number = sib & 7;
            let index_number = (sib >> 3 & 7) | extend_index;
            if index_number != 4 {
                index = registers.get(index_number) << (sib >> 6);
            }
        }
        let (base, length) = match mode {
            // Without a base: relative to the next instruction, or absolute behind an index byte.
            0 if base_number == 5 && rm == 5 => (start.wrapping_add(at + 4), at + 4),
            0 if base_number == 5 => (0, at + 4),
            0 => (registers.get(base_number | extend_base), at),
            1 => (registers.get(base_number | extend_base), at + 1),
            2 => (registers.get(base_number | extend_base), at + 4),
            _ => return Err("not a memory operand"),
        };
        let offset = match length - at {
            0 => 0,
            1 => code[at] as i8 as isize as usize,
            _ => i32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]]) as isize as usize,
        };
        Ok(Self { base: base.wrapping_add(offset), index, length })
    }
}

impl Tiles {
    fn configure(&mut self, config: [u8; 64]) -> Result<(), &'static str> {
        *self = NO_TILES;
        if config[0] == 0 {
            return Ok(());
        }
        if config[0] != 1 || config[1] != 0 || config[2..16].iter().any(|&byte| byte != 0) {
            return Err("a configuration of another palette, or with reserved bytes");
        }
        for tile in 0..TILES {
            let row_bytes = usize::from(u16::from_le_bytes([config[16 + 2 * tile], config[17 + 2 * tile]]));
            let rows = usize::from(config[48 + tile]);
            if rows > ROWS || row_bytes > ROW_BYTES || (rows == 0) != (row_bytes == 0) {
                return Err("a configuration with an impossible shape");
            }
            (self.rows[tile], self.row_bytes[tile]) = (rows, row_bytes);
        }
        if config[32..48].iter().chain(&config[56..]).any(|&byte| byte != 0) {
            return Err("a configuration of tiles that do not exist");
        }
        self.config = config;
        Ok(())
    }

    /// Rows and bytes a row of a configured tile.
    fn shape(&self, tile: usize) -> Result<(usize, usize), &'static str> {
        let shape = (self.rows[tile], self.row_bytes[tile]);
        if shape.0 == 0 { Err("a tile that is not configured") } else { Ok(shape) }
    }

    /// `sum[m][n] += sum_{k, j} a[m][4 k + j] * b[k][4 n + j]`, modulo 2^32.
    fn multiply(
        &mut self,
        sum: usize,
        a: usize,
        b: usize,
        a_signed: bool,
        b_signed: bool,
    ) -> Result<(), &'static str> {
        let (rows, row_bytes) = self.shape(sum)?;
        let a_shape = self.shape(a)?;
        let b_shape = self.shape(b)?;
        if sum == a || a == b || b == sum {
            return Err("a product of tiles that are not distinct");
        }
        if a_shape.0 != rows || b_shape.1 != row_bytes || a_shape.1 != 4 * b_shape.0 || row_bytes % 4 != 0 {
            return Err("a product of tiles that do not fit");
        }
        let extend = |byte: u8, signed: bool| if signed { i32::from(byte as i8) } else { i32::from(byte) };
        let mut b_words = [[0; ROW_BYTES]; ROWS];
        for (words, bytes) in b_words.iter_mut().zip(&self.data[b]) {
            *words = bytes.map(|byte| extend(byte, b_signed));
        }
        let a_data = self.data[a];
        for m in 0..rows {
            let mut sums = [0i32; ROW_BYTES / 4];
            for k in 0..b_shape.0 {
                let a_words = [0, 1, 2, 3].map(|j| extend(a_data[m][4 * k + j], a_signed));
                for (n, slot) in sums.iter_mut().enumerate() {
                    let product: i32 = (0..4).map(|j| a_words[j] * b_words[k][4 * n + j]).sum();
                    *slot = slot.wrapping_add(product);
                }
            }
            for (slot, addend) in self.data[sum][m][..row_bytes].chunks_exact_mut(4).zip(sums) {
                let word = i32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]]);
                slot.copy_from_slice(&word.wrapping_add(addend).to_le_bytes());
            }
        }
        Ok(())
    }
}
