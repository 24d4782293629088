//! A page for tests alone, which shows all that a new protocol takes: this file, and a line in [`crate::registry`]. It is
//! SimplePIR, path (1), with the rows of an answer in reverse order.

use hush_he::{
    codec::{pack_rounded, unpack_scaled},
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
    simple::{PreparedSimple, Simple, SimplePending},
    target::Target,
    wire,
};

/// The page of `toy`.
pub(crate) struct Toy;

impl LwePage for Toy {
    const NAME: &'static str = "toy";
    const SPEC: LweSpec = LweSpec { protocol: Protocol::Toy, one_block: false, second_fold: false };
    type Prepared = PreparedSimple;
    type Pending = SimplePending;

    fn columns(lwe: &LweParams, slots: usize, slot_bytes: usize) -> usize {
        Simple::columns(lwe, slots, slot_bytes)
    }

    fn prepare(table: &LweTable, seed: PublicSeed, rng: &mut Csprng) -> PreparedSimple {
        Simple::prepare(table, seed, rng)
    }

    fn ask(table: &LweTable, prepared: PreparedSimple, target: &Target) -> (wire::Query, SimplePending) {
        Simple::ask(table, prepared, target)
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
        let answers = Simple::finish(backend, table, second, opened, folded)?;
        answers.iter().map(|answer| turned(table, answer)).collect()
    }

    fn recover(
        table: &LweTable,
        hint: &[u8],
        pending: &SimplePending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Vec<u8>, ProtocolError> {
        Simple::recover(table, hint, pending, target, &turned(table, answer)?)
    }
}

/// Returns the words of an answer in reverse order.
fn turned(table: &LweTable, answer: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let bits = table.widths().answer;
    let mut words = unpack_scaled(answer, table.rows(), bits)?;
    words.reverse();
    Ok(pack_rounded(&words, bits))
}

mod tests {
    use std::{slice, sync::Arc};

    use hush_he::params::{DEFAULT_LWE, ParameterSet};
    use hush_ops::{
        reference::Reference,
        tiling::{DbBytes, TiledDb},
    };

    use super::*;
    use crate::{
        any_page::Slots,
        client::Given,
        facts::{DB_FILE, Database, HintProduct},
        hosted::Hosted,
        page::{Files, Page},
        registry::Visitor,
        table::TableShape,
    };

    /// A snapshot that consists of a database alone. A server of this page reads no other file.
    struct DbFile(DbBytes);

    impl Files for DbFile {
        type Error = ProtocolError;

        fn bytes(&self, name: &'static str) -> Result<DbBytes, ProtocolError> {
            assert_eq!(name, DB_FILE);
            Ok(self.0.clone())
        }
    }

    const SEED: PublicSeed = PublicSeed([1; 32]);

    struct Answer<'a>(TableShape, DbFile, &'a wire::Query);

    impl Visitor for Answer<'_> {
        type Output = Vec<u8>;

        fn visit<P: Page>(self) -> Vec<u8> {
            let table = P::table(P::Set::named(DEFAULT_LWE.name()).unwrap(), self.0).unwrap();
            let hosted = Hosted::<P, Reference>::open(Arc::new(Reference), table, SEED, &self.1).unwrap();
            hosted.answer(slice::from_ref(self.2), &[]).unwrap().remove(0)
        }
    }

    /// A page is served and asked by its name. Nothing here names its type.
    #[test]
    fn the_toy_is_asked_by_its_name() {
        let protocol: Protocol = "toy".parse().unwrap();
        assert!(Protocol::ALL.contains(&protocol) && protocol.to_string() == "toy");
        let page = protocol.page();
        let set = DEFAULT_LWE.name();
        let slots = Slots { count: 50, slot_bytes: 3, by_key: false };
        let table = page.table(set, page.shape(set, slots, Some(10)).unwrap()).unwrap();
        let shape = table.facts().shape;
        assert_eq!(shape, TableShape { columns: 10, blocks: 5, slot_bytes: 3 });

        let (Database::Bytes(tiling), Some(plan)) = (table.database(), table.hint()) else { panic!("bytes") };
        let matrix: Vec<u8> = (0..tiling.rows() * tiling.cols()).map(|at| (at * 37) as u8).collect();
        let db = TiledDb::from_matrix(tiling.rows(), tiling.cols(), &matrix);
        let HintProduct::Download { bits } = plan.product else { panic!("a hint that clients download") };
        let public = PublicMatrix::new(SEED, plan.matrix);
        let hint = pack_rounded(&Reference.lwe_hint(&db, &public, 0..plan.rows).unwrap(), bits);
        let client = table.client(&Given { hint: Some(Arc::new(hint)), ..Given::new(SEED) }).unwrap();

        let target = Target { columns: vec![(4, 1)], block: 3 };
        let (query, pending) = client.query(target, &mut Csprng::from_os());
        let answer = |protocol: Protocol| {
            let file = DbFile(Arc::new(db.bytes().to_vec()));
            protocol.visit(Answer(shape, file, &query))
        };
        let toy = answer(protocol);
        let expected: Vec<u8> = (9..12).map(|row| matrix[row * shape.columns + 4]).collect();
        assert_eq!(*client.recover(&pending, &toy).unwrap(), expected);
        // It differs from `simple`.
        assert_eq!(toy.len(), table.facts().answer_bytes);
        assert_ne!(toy, answer(Protocol::Simple));
    }
}
