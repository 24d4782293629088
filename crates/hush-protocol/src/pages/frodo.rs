//! FrodoPIR, path (1) with a single row block: every record is a column.
//!
//! All but the layout is that of [`crate::simple`]. Answer and hint are one
//! slot long (tiny), the query has a word for every slot of the table (long). ChalametPIR is this with a key filter.
//!
//! Source: FrodoPIR (Davidson, Pestana, Celi) section 4; ChalametPIR (Celi, Davidson) section 4.

use crate::simple::OneFold;

/// The page.
pub type Frodo = OneFold<true>;
