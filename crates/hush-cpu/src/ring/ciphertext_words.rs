//! Sums, differences and multiples of polynomials in evaluation form, limb by limb.

use super::{
    ModRing,
    montgomery::Montgomery,
    vectorise::{self, VectorLoop},
};

/// `difference = x - y`, for whole polynomials.
pub(super) fn subtract(ring: &ModRing, x: &[u32], y: &[u32], difference: &mut [u32]) {
    let degree = ring.degree();
    let operands = x.chunks_exact(degree).zip(y.chunks_exact(degree));
    for (index, ((x, y), difference)) in operands.zip(difference.chunks_exact_mut(degree)).enumerate() {
        let montgomery = ring.limbs()[index % ring.limbs().len()].montgomery;
        vectorise::run(ring.level(), Subtract { montgomery, x, y, difference });
    }
}

/// `(image, node) = (node + image, (node - image) monomial)`, the monomial in Montgomery form.
pub(super) fn split_node(ring: &ModRing, monomial: &[u32], image: &mut [u32], node: &mut [u32]) {
    let degree = ring.degree();
    for (index, (image, node)) in
        image.chunks_exact_mut(degree).zip(node.chunks_exact_mut(degree)).enumerate()
    {
        let limb = index % ring.limbs().len();
        let montgomery = ring.limbs()[limb].montgomery;
        let monomial = &monomial[limb * degree..][..degree];
        vectorise::run(ring.level(), SplitNode { montgomery, monomial, image, node });
    }
}

struct Subtract<'a> {
    montgomery: Montgomery,
    x: &'a [u32],
    y: &'a [u32],
    difference: &'a mut [u32],
}

impl VectorLoop for Subtract<'_> {
    #[inline(always)]
    fn run(self) {
        for ((difference, &x), &y) in self.difference.iter_mut().zip(self.x).zip(self.y) {
            *difference = self.montgomery.sub(x, y);
        }
    }
}

struct SplitNode<'a> {
    montgomery: Montgomery,
    monomial: &'a [u32],
    image: &'a mut [u32],
    node: &'a mut [u32],
}

impl VectorLoop for SplitNode<'_> {
    #[inline(always)]
    fn run(self) {
        let m = self.montgomery;
        for ((image, node), &monomial) in self.image.iter_mut().zip(self.node).zip(self.monomial) {
            (*image, *node) = (m.add(*node, *image), m.mul(m.sub(*node, *image), monomial));
        }
    }
}
