//! The public LWE matrix A, expanded from a fixed seed by whoever needs it.

use hush_math::csprng::Csprng;

/// What an A is for. Matrices of different domains are independent, as DoublePIR's two folds need
/// (A1 and A2 from one seed would leak the difference of two queries).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixDomain {
    /// The first dimension of a look-up.
    First,
    /// The second dimension of DoublePIR, `exppack-d` and `double-pack`.
    Second,
}

/// How the entries of A depend on each other.
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

/// The public matrix A: `cols x n` words modulo 2^32, a pure function of its four numbers.
///
/// The seed is fixed and domain-separated: it is derived here by client and server alike and is never taken
/// from the network, since a server that chose A could choose one that hands over the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicMatrix {
    domain: MatrixDomain,
    structure: MatrixStructure,
    cols: usize,
    n: usize,
}

impl PublicMatrix {
    /// The matrix for `cols` database columns and LWE dimension `n`.
    ///
    /// # Panics
    /// If the ring degree is not a power of two that divides `n`: parameters are checked before they get here.
    pub fn new(domain: MatrixDomain, structure: MatrixStructure, cols: usize, n: usize) -> Self {
        if let MatrixStructure::Ring { degree } = structure {
            assert!(degree.is_power_of_two() && n.is_multiple_of(degree), "ring degree {degree} for n = {n}");
        }
        Self { domain, structure, cols, n }
    }

    /// Number of rows of A, that is database columns D0.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// LWE dimension n.
    pub fn n(&self) -> usize {
        self.n
    }

    /// What A is for.
    pub fn domain(&self) -> MatrixDomain {
        self.domain
    }

    /// The structure of A.
    pub fn structure(&self) -> MatrixStructure {
        self.structure
    }

    /// The ring elements `alpha[k]`, `k < n / degree`, of block `block` (database columns
    /// `block * degree ..`), as `n` words: `out[k * degree + m]` is coefficient `m` of `alpha[k]`.
    ///
    /// # Panics
    /// If A is [`MatrixStructure::Plain`] or `out` is not `n` long.
    pub fn ring_block_into(&self, block: usize, out: &mut [u32]) {
        assert!(matches!(self.structure, MatrixStructure::Ring { .. }) && out.len() == self.n);
        self.stream(block).fill_u32(out);
    }

    /// Row `col` of A (the `n` words that belong to database column `col`), computed directly from the
    /// definition: the slow, obvious form that faster ones are tested against.
    ///
    /// For a ring block with elements `alpha[k]`, entry `k * d + i` of the row of column `c` (within the block)
    /// is `alpha[k][c - i]`, or `-alpha[k][d + c - i]` where `c < i`.
    ///
    /// # Panics
    /// If `col >= cols` or `out` is not `n` long.
    pub fn row_into(&self, col: usize, out: &mut [u32]) {
        assert!(col < self.cols && out.len() == self.n);
        match self.structure {
            MatrixStructure::Plain => self.stream(col).fill_u32(out),
            MatrixStructure::Ring { degree } => {
                let mut alpha = vec![0; self.n];
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

    fn stream(&self, index: usize) -> Csprng {
        let mut context = Vec::with_capacity(24);
        context.push(match self.domain {
            MatrixDomain::First => 1,
            MatrixDomain::Second => 2,
        });
        context.extend((self.n as u64).to_le_bytes());
        context.extend(match self.structure {
            MatrixStructure::Plain => 0u64.to_le_bytes(),
            MatrixStructure::Ring { degree } => (degree as u64).to_le_bytes(),
        });
        Csprng::public("hushdb v1 2026 public LWE matrix", &context, index as u64)
    }
}
