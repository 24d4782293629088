//! A table without its records: its shape, its parameters, its columns and its name.
//!
//! * [`table`]: the shape of a table and the limits of all tables. [`layout`]: how a shape is chosen. [`entry_layout`]: which
//!   blocks share a plaintext.
//! * [`descriptor`]: what a client must know of a table. [`facts`]: what a page says of a table, as plain data.
//! * [`presets`]: every parameter set.
//! * [`schema`]: the columns. [`column_type`]: their types.
//! * [`mod@name`]: names of tables and of their files.

pub mod column_type;
pub mod descriptor;
pub(crate) mod entry_layout;
pub mod facts;
pub mod layout;
pub mod name;
pub mod presets;
pub mod schema;
pub mod table;
