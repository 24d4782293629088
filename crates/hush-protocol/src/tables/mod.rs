//! The description of a table: its shape, parameters, columns and name, without its records.
//!
//! * [`table`]: the shape of a table and the limits of all tables. [`layout`]: the choice of a shape. [`entry_layout`]: the
//!   blocks that share a plaintext.
//! * [`descriptor`]: the public description that a client reads. [`facts`]: the sizes and files of a table, as plain data.
//! * [`presets`]: all parameter sets.
//! * [`schema`]: the columns. [`column_type`]: their types.
//! * [`mod@name`]: the names of tables and of their files.

pub mod column_type;
pub mod descriptor;
pub(crate) mod entry_layout;
pub mod facts;
pub mod layout;
pub mod name;
pub mod presets;
pub mod schema;
pub mod table;
