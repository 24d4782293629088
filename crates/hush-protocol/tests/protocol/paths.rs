//! Compares the path that each page states with the steps that its server calls. The planner, the memory plan and the largest batch
//! rely on the path alone.

use std::{slice, sync::Arc};

use hush_he::params::{
    INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_PRIVKS_N256, INSECURE_RING_N256, INSECURE_TFHE_N256,
    LWE_N1280_STD3_2_PLAIN, ParameterSet,
};
use hush_ops::{
    reference::Reference,
    steps::{FoldOnline, LweFold, Pack, PackOnline, RlweFold, StepShape},
};
use hush_protocol::Protocol;

use crate::support::{Recorder, Setup, filled, one, shape};

/// Columns, blocks and slot bytes: one plaintext, and more than are packed in pairs.
const SHAPES: [(usize, usize, usize); 2] = [(5, 7, 20), (3, 40, 60)];

/// Returns a set of the protocol that is quick; `None` if there is no server's half to look at.
fn set_of(protocol: Protocol) -> Option<&'static str> {
    let sets = [
        INSECURE_RING_N256.name(),
        INSECURE_TFHE_N256.name(),
        INSECURE_PRIVKS_N256.name(),
        INSECURE_PACK_N256.name(),
        INSECURE_COLPACK_N256.name(),
        LWE_N1280_STD3_2_PLAIN.name(),
    ];
    sets.into_iter().find(|set| protocol.page().has_set(set))
}

/// Returns the steps as a backend sees them: it does not know whose a database is. What is sent may go in several calls.
fn as_called(steps: impl IntoIterator<Item = StepShape>) -> Vec<StepShape> {
    let mut all: Vec<StepShape> = Vec::new();
    for step in steps {
        let step = match step {
            StepShape::FoldOnline(FoldOnline { db }) => LweFold { db }.into(),
            // Rows of a pack differ by who owns the hint: rows that are packed at once are told by the hint's columns.
            StepShape::Pack(Pack { ring, hint: db, .. })
            | StepShape::PackOnline(PackOnline { ring, hint: db, parts: 1, .. }) => {
                RlweFold { ring, db }.into()
            }
            step => step,
        };
        match (all.last_mut(), step) {
            (Some(StepShape::SendWords(sent)), StepShape::SendWords(more)) => {
                sent.rows += more.rows;
                sent.bytes += more.bytes;
            }
            (Some(StepShape::Respond(sent)), StepShape::Respond(more)) => sent.plaintexts += more.plaintexts,
            _ => all.push(step),
        }
    }
    all
}

#[test]
fn a_path_is_what_scan_and_finish_call() {
    let mut looked_at = Vec::new();
    for &protocol in Protocol::ALL {
        let Some(set) = set_of(protocol) else { continue };
        for (columns, blocks, slot_bytes) in SHAPES {
            let blocks = if protocol.page().has_columns() { blocks } else { 1 };
            let shape = shape(columns, blocks, slot_bytes);
            // Some protocols have only some of the shapes.
            let Ok(table) = protocol.page().table(set, shape) else { continue };
            let setup = Setup::new(Reference, table, filled(shape, None));
            let recorder = Arc::new(Recorder::default());
            let server = setup.serve(&recorder, slice::from_ref(&(0..setup.table.facts().units)));
            let target = one(0, 0);
            let (query, pending) = setup.query(&target);
            recorder.take();
            let answers = server.answer(slice::from_ref(&query)).unwrap();
            let path = setup.table.base().path();
            let expected = as_called(path.into_iter().map(|step| step.shape));
            assert_eq!(as_called(recorder.take()), expected, "{protocol}, {shape:?}");
            setup.check_answers(&[target], &[pending], &answers);
            looked_at.push(protocol);
        }
    }
    looked_at.dedup();
    let queried: Vec<_> =
        Protocol::ALL.iter().copied().filter(|&protocol| protocol != Protocol::Download).collect();
    assert_eq!(looked_at, queried);
}
