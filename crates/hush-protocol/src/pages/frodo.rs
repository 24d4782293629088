//! FrodoPIR, path (1) with a single row block: every record is a column.
//!
//! Everything except the layout is that of [`crate::simple`]. The answer and the hint cover a single slot and are small.
//! The query has a word for every slot of the table and is long. ChalametPIR is this protocol with a key filter.
//!
//! Source: FrodoPIR (Davidson, Pestana, Celi) section 4; ChalametPIR (Celi, Davidson) sections 4 and 5.

use crate::simple::OneFold;

/// The page of `frodo`.
pub type Frodo = OneFold<true>;
