//! FrodoPIR, path (1) with a single row block: every record is a column.
//!
//! The client and server halves are those of [`crate::simple`]; only the layout differs. Answer and hint are one
//! slot long (tiny), the query has a word for every slot of the table (long). ChalametPIR is this with a key filter.
//!
//! Source: FrodoPIR (Davidson, Pestana, Celi) section 4; ChalametPIR (Celi, Davidson) section 4.

use hush_he::{
    entities::{PublicMatrix, PublicSeed},
    params::LweParams,
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweBatch, LweOps},
    path::Step,
};

use crate::{
    ProtocolError,
    lwe_page::{LwePage, OpenedLwe},
    lwe_table::{LweSpec, LweTable},
    registry::Protocol,
    simple::{Simple, SimplePending},
    target::Target,
    wire,
};

/// The page.
pub struct Frodo;

impl LwePage for Frodo {
    const NAME: &'static str = "frodo";
    const SPEC: LweSpec = LweSpec { protocol: Protocol::Frodo, one_block: true, second_fold: false };
    type Pending = SimplePending;

    fn columns(_: &LweParams, slots: usize, _: usize) -> usize {
        slots
    }

    fn query(
        table: &LweTable,
        seed: PublicSeed,
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, SimplePending) {
        Simple::query(table, seed, target, rng)
    }

    fn path_behind(table: &LweTable) -> Vec<Step> {
        Simple::path_behind(table)
    }

    fn finish<B: LweOps>(
        backend: &B,
        table: &LweTable,
        second: Option<(&B::Db, PublicMatrix)>,
        opened: &OpenedLwe,
        folded: &LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        Simple::finish(backend, table, second, opened, folded)
    }

    fn recover(
        table: &LweTable,
        hint: &[u8],
        pending: &SimplePending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Vec<u8>, ProtocolError> {
        Simple::recover(table, hint, pending, target, answer)
    }
}
