//! Tables of all protocols on an emulated GPU: builds make the same files as on the CPU, engines give the same answers, what the
//! memory plan promises is kept, and what goes wrong on a device is told.

mod failures;
mod memory;
mod place;
mod tables;
