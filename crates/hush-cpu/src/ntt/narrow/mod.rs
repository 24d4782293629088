//! The transform in 32-bit lanes, for every level with vectors but no products of 52 bits. It works in place: a stage at a time
//! across vectors, and the last stages within transposed squares of vectors.

mod arithmetic;
mod passes;
mod tables;

use std::marker::PhantomData;

use hush_math::ntt::NttPlan;

use self::{
    arithmetic::{Arithmetic, Canonical, Lazy},
    tables::Tables,
};
use super::VectorTransform;
use crate::{
    Level,
    kernels::with_lanes,
    lanes::{
        Lanes,
        vector_loop::{self, VectorLoop},
    },
};

/// The modulus below which residues up to 4 p fit a lane.
const LAZY_LIMIT: u32 = 1 << 30;

/// The transform of one degree modulo one modulus with the vectors of a level.
pub(super) struct Narrow {
    level: Level,
    tables: Tables,
}

impl Narrow {
    /// Creates the transform for the vectors of `level`; `None` if the degree is too small for squares of vectors.
    pub(super) fn new(level: Level, plan: &NttPlan) -> Option<Self> {
        let width = with_lanes!(level, L => L::WIDTH);
        let tables = match plan.modulus().value() < LAZY_LIMIT {
            true => Tables::new::<Lazy>,
            false => Tables::new::<Canonical>,
        };
        (plan.degree() >= 2 * width * width).then(|| Self { level, tables: tables(plan, width) })
    }

    /// Transforms `values`, which are as long as the degree.
    fn transform(&self, inverse: bool, values: &mut [u32]) {
        let tables = &self.tables;
        if tables.p < LAZY_LIMIT {
            let arithmetic = PhantomData::<Lazy>;
            vector_loop::run(self.level, Passes { inverse, arithmetic, tables, values });
        } else {
            let arithmetic = PhantomData::<Canonical>;
            vector_loop::run(self.level, Passes { inverse, arithmetic, tables, values });
        }
    }
}

impl VectorTransform for Narrow {
    fn scratch_words(&self) -> usize {
        0
    }

    fn forward(&self, values: &mut [u32], _scratch: &mut [u64]) {
        self.transform(false, values);
    }

    fn inverse(&self, values: &mut [u32], _scratch: &mut [u64]) {
        self.transform(true, values);
    }
}

/// All passes of a transform.
struct Passes<'a, A> {
    inverse: bool,
    arithmetic: PhantomData<A>,
    tables: &'a Tables,
    values: &'a mut [u32],
}

impl<A: Arithmetic> VectorLoop for Passes<'_, A> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the caller has the instruction set, and the tables are for its vectors.
        unsafe {
            match (L::WIDTH, self.inverse) {
                (16, false) => passes::forward::<L, A, 16>(self.tables, self.values),
                (16, true) => passes::inverse::<L, A, 16>(self.tables, self.values),
                (_, false) => passes::forward::<L, A, 8>(self.tables, self.values),
                (_, true) => passes::inverse::<L, A, 8>(self.tables, self.values),
            }
        }
    }
}
