//! The public LWE matrix A, expanded from a table's seed.

use hush_math::csprng::Csprng;

use super::PublicSeed;

/// The purpose of a matrix A. Matrices of different domains are independent, which DoublePIR's two folds need: with A1 and A2
/// from one stream, the difference of two queries would leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixDomain {
    /// The first dimension of a look-up.
    First,
    /// The second dimension of DoublePIR, `exppack-d` and `double-pack`.
    Second,
}

/// The dependence between the entries of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixStructure {
    /// Every entry is independent (LWE).
    Plain,
    /// A is a grid of `degree x degree` negacyclic matrices (module-LWE of rank `n / degree`):
    /// a query costs a few ring products instead of `cols * n` multiply-adds.
    Ring {
        /// The ring degree, a power of two that divides `n`.
        degree: usize,
    },
}

/// The shape of a public matrix: everything that determines A beside the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixShape {
    domain: MatrixDomain,
    structure: MatrixStructure,
    cols: usize,
    n: usize,
    /// The rows of the unwrapped matrix that add up to one row of this matrix; 1 if it is not wrapped.
    wraps: usize,
}

impl MatrixShape {
    /// Creates the shape of a matrix for `cols` database columns and LWE dimension `n`.
    ///
    /// # Panics
    /// If the ring degree is not a power of two that divides `n`. Callers check parameters first.
    pub fn new(domain: MatrixDomain, structure: MatrixStructure, cols: usize, n: usize) -> Self {
        if let MatrixStructure::Ring { degree } = structure {
            assert!(degree.is_power_of_two() && n.is_multiple_of(degree), "ring degree {degree} for n = {n}");
        }
        Self { domain, structure, cols, n, wraps: 1 }
    }

    /// Returns the shape of the matrix of queries that are wrapped to `cols` words: its row `c` is the sum of the rows
    /// `c + j * cols` of this matrix. The structure is the same.
    ///
    /// # Panics
    /// If `cols` does not divide the number of rows, or is not a multiple of [`MatrixShape::column_unit`]. Callers check parameters
    /// first.
    pub fn wrapped(self, cols: usize) -> Self {
        if cols == self.cols {
            return self;
        }
        assert!(self.wraps == 1 && self.cols.is_multiple_of(cols), "{cols} of {} columns", self.cols);
        assert!(cols.is_multiple_of(self.column_unit()), "{cols} columns");
        Self { cols, wraps: self.cols / cols, ..self }
    }

    /// Returns the number of rows in a unit of the structure: a matrix is wrapped to a multiple of it.
    pub fn column_unit(&self) -> usize {
        match self.structure {
            MatrixStructure::Plain => 1,
            MatrixStructure::Ring { degree } => degree,
        }
    }

    /// Returns the number of rows of A: the database columns D0.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the LWE dimension n.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Returns the domain of A.
    pub fn domain(&self) -> MatrixDomain {
        self.domain
    }

    /// Returns the structure of A.
    pub fn structure(&self) -> MatrixStructure {
        self.structure
    }
}

/// The public matrix A: `cols x n` words modulo 2^32, a pure function of its seed and shape.
///
/// A wrapped A belongs to queries whose words are added up modulo `cols`: row `c` is the sum of the rows `c + j * cols`.
///
/// The seed belongs to the table, so that work on one table's A is of no use against another's. A server cannot choose A: its words
/// are a hash of the seed and a domain string, so trying seeds only draws uniform matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicMatrix {
    seed: PublicSeed,
    shape: MatrixShape,
}

impl PublicMatrix {
    /// Creates the matrix of `shape` that belongs to `seed`.
    pub fn new(seed: PublicSeed, shape: MatrixShape) -> Self {
        Self { seed, shape }
    }

    /// Returns the shape of A.
    pub fn shape(&self) -> &MatrixShape {
        &self.shape
    }

    /// Returns [`MatrixShape::cols`].
    pub fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Returns [`MatrixShape::n`].
    pub fn n(&self) -> usize {
        self.shape.n
    }

    /// Returns [`MatrixShape::structure`].
    pub fn structure(&self) -> MatrixStructure {
        self.shape.structure
    }

    /// Writes the ring elements `alpha[k]`, `k < n / degree`, of block `block` (database columns `block * degree ..`) to `out`
    /// as `n` words: `out[k * degree + m]` is coefficient `m` of `alpha[k]`.
    ///
    /// # Panics
    /// If A is [`MatrixStructure::Plain`] or `out` is not `n` long.
    pub fn ring_block_into(&self, block: usize, out: &mut [u32]) {
        assert!(matches!(self.structure(), MatrixStructure::Ring { .. }) && out.len() == self.n());
        self.sum_of_streams(block, self.cols() / self.shape.column_unit(), out);
    }

    /// Writes row `col` of A (the `n` words of database column `col`) to `out`. It follows the definition and is slow; faster
    /// implementations are tested against it.
    ///
    /// For a ring block with elements `alpha[k]`, entry `k * d + i` of the row of column `c` (within the block)
    /// is `alpha[k][c - i]`, or `-alpha[k][d + c - i]` where `c < i`.
    ///
    /// # Panics
    /// If `col >= cols` or `out` is not `n` long.
    pub fn row_into(&self, col: usize, out: &mut [u32]) {
        assert!(col < self.cols() && out.len() == self.n());
        match self.structure() {
            MatrixStructure::Plain => self.sum_of_streams(col, self.cols(), out),
            MatrixStructure::Ring { degree } => {
                let mut alpha = vec![0; self.n()];
                self.ring_block_into(col / degree, &mut alpha);
                let c = col % degree;
                for (row, alpha) in out.chunks_mut(degree).zip(alpha.chunks(degree)) {
                    for i in 0..degree {
                        row[i] = if c >= i { alpha[c - i] } else { alpha[degree + c - i].wrapping_neg() };
                    }
                }
            }
        }
    }

    /// Writes to `out` the sum of the unwrapped entries at `index` and at every `step` after it, one for each wrap.
    fn sum_of_streams(&self, index: usize, step: usize, out: &mut [u32]) {
        self.stream(index).fill_u32(out);
        let wraps = self.shape.wraps;
        let mut more = vec![0; if wraps > 1 { self.n() } else { 0 }];
        for wrap in 1..wraps {
            self.stream(index + wrap * step).fill_u32(&mut more);
            out.iter_mut().zip(&more).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
        }
    }

    fn stream(&self, index: usize) -> Csprng {
        let mut context = self.seed.0.to_vec();
        context.push(match self.shape.domain {
            MatrixDomain::First => 1,
            MatrixDomain::Second => 2,
        });
        context.extend((self.n() as u64).to_le_bytes());
        context.extend(match self.structure() {
            MatrixStructure::Plain => 0u64.to_le_bytes(),
            MatrixStructure::Ring { degree } => (degree as u64).to_le_bytes(),
        });
        Csprng::public("hushdb v2 2026 public LWE matrix", &context, index as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: PublicSeed = PublicSeed([1; 32]);

    #[test]
    fn a_wrapped_matrix_is_the_sum_of_rows() {
        let ring = MatrixStructure::Ring { degree: 8 };
        for (structure, cols, wrapped) in [
            (MatrixStructure::Plain, 12, 4),
            (MatrixStructure::Plain, 12, 1),
            (ring, 48, 16),
            (ring, 48, 48),
            (ring, 48, 8),
        ] {
            let shape = MatrixShape::new(MatrixDomain::First, structure, cols, 16);
            let [all, matrix] = [shape, shape.wrapped(wrapped)].map(|shape| PublicMatrix::new(SEED, shape));
            assert_eq!((matrix.cols(), matrix.n()), (wrapped, 16));
            let row = |matrix: &PublicMatrix, col| {
                let mut row = vec![0; 16];
                matrix.row_into(col, &mut row);
                row
            };
            for col in 0..wrapped {
                let mut expected = vec![0u32; 16];
                for other in (col..cols).step_by(wrapped) {
                    let row = row(&all, other);
                    expected.iter_mut().zip(row).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
                }
                assert_eq!(row(&matrix, col), expected, "{structure:?}, {wrapped} of {cols}, row {col}");
            }
        }
    }

    #[test]
    fn matrices_of_two_seeds_or_domains_have_no_row_in_common() {
        let ring = MatrixStructure::Ring { degree: 8 };
        let rows = |seed, domain, structure| {
            let matrix =
                PublicMatrix::new(PublicSeed([seed; 32]), MatrixShape::new(domain, structure, 16, 16));
            (0..16)
                .map(|col| {
                    let mut row = vec![0; 16];
                    matrix.row_into(col, &mut row);
                    row
                })
                .collect::<Vec<_>>()
        };
        for structure in [MatrixStructure::Plain, ring] {
            let first = rows(1, MatrixDomain::First, structure);
            for other in [rows(2, MatrixDomain::First, structure), rows(1, MatrixDomain::Second, structure)] {
                assert!(first.iter().all(|row| !other.contains(row)), "{structure:?}");
            }
        }
    }
}
