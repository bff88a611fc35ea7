//! A path's node put among its siblings, by picks of one of two values: the gadget `insert` of storage-proofs-core.

use std::array;

use blstrs::Scalar;

use super::writer::{Codes, Writer};
use crate::c1::{model::Level, shape::element};

/// Of two: index bit, sibling, and the two in order.
pub(super) fn insert_2(out: &mut Writer, node: Scalar, level: &Level) -> [Scalar; 2] {
    out.bits(level.index as u64, 1);
    let sibling = element(&level.hashes[0]);
    out.num(sibling);
    let second = level.index == 1;
    [out.pick(second, sibling, node), out.pick(second, node, sibling)]
}

/// Of eight: three index bits, seven siblings, two products of index bits, and 20 picks.
///
/// In each half of four places, the lower two index bits say where the node would go among the half's three siblings; the
/// highest bit says whether it goes into this half at all, or the half's places hold siblings in order.
pub(super) fn insert_8(out: &mut Writer, node: Scalar, level: &Level) -> [Scalar; 8] {
    out.bits(level.index as u64, 3);
    let [b0, b1, b2] = [0, 1, 2].map(|i| level.index >> i & 1 == 1);
    let siblings: [Scalar; 7] = array::from_fn(|i| element(&level.hashes[i]));
    for sibling in siblings {
        out.num(sibling);
    }
    let (neither, both) = (!b0 && !b1, b0 && b1);
    for (product, x, y) in [(neither, !b0, !b1), (both, b0, b1)] {
        out.wires(product.into(), 1);
        out.small_products(Codes::bits(x.into()), y.into(), 1);
    }

    let mut pick = |condition, x, y| out.pick(condition, x, y);
    array::from_fn(|place| {
        let upper = place >= 4;
        let [s0, s1, s2] = if upper { [4, 5, 6] } else { [0, 1, 2] }.map(|i| siblings[i]);
        let with_node = match place % 4 {
            0 => pick(neither, node, s0),
            1 => {
                let if_not_b1 = pick(b0, node, s0);
                pick(b1, s1, if_not_b1)
            }
            2 => {
                let if_b1 = pick(b0, s2, node);
                pick(b1, if_b1, s1)
            }
            _ => pick(both, node, s2),
        };
        // The node is in the lower half: places of the upper one hold the sibling before; or the other way round.
        if upper { pick(b2, with_node, siblings[place - 1]) } else { pick(b2, siblings[place], with_node) }
    })
}
