//! FrodoPIR, path (1) with a single row block: every record is a column.
//!
//! The client and server halves are those of [`crate::simple`]; only the layout differs. Answer and hint are one
//! slot long (tiny), the query has a word for every slot of the table (long). ChalametPIR is this with a key filter.
//!
//! Source: FrodoPIR (Davidson, Pestana, Celi) section 4; ChalametPIR (Celi, Davidson) section 4.

use crate::table::TableShape;

/// One block with a column for every one of `slots` slots.
pub fn layout(slots: usize, slot_bytes: usize) -> TableShape {
    TableShape { columns: slots, blocks: 1, slot_bytes }
}
