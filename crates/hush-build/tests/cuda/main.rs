//! Tables of all protocols on an emulated GPU: builds make the same files as on the CPU, engines give the same answers, what the
//! memory plan promises is kept, several devices share the tables or a table, and what goes wrong on a device is told.

#[path = "../tables/mod.rs"]
mod tables;

mod devices;
mod failures;
mod hosting;
mod memory;
mod parts;
mod scanning;
mod several;
mod spread;
