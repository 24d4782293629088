//! Tables built, built again after a kill, and served, all on the CPU.

#[path = "../../../hush-cuda/tests/made/mod.rs"]
mod made;
#[path = "../tables/mod.rs"]
mod tables;

mod answers;
mod changes;
mod compressed;
mod hint_files;
mod hostile;
mod jobs;
mod memory;
mod parts;
mod resume;
mod shapes;
mod sorted;
mod tiers;
