//! Ranges within others, as pieces of which each key has one: the piece of the smallest range.

use hush_protocol::sorted::order::SortOrder;

use super::SortError;

/// A range of the input, and the number of its record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InputRange {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) record: u32,
}

/// A piece: where it begins, and the range that it is of. It ends where the next piece or its range ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RangePiece {
    pub(super) start: Vec<u8>,
    /// The index of the range.
    pub(super) range: u32,
}

/// Ranges that overlap, where neither is within the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Overlaps {
    /// The number of such pairs.
    pub(super) pairs: u64,
    /// The indices of the first pair.
    pub(super) first: [usize; 2],
}

/// Returns the pieces of ranges, which are sorted by their beginnings, the longer first, and are distinct. A key that several
/// ranges have is in the one that begins last, and of these in the shortest: the smallest range, unless some overlap.
pub(super) fn pieces(ranges: &[InputRange], order: SortOrder) -> (Vec<RangePiece>, Overlaps) {
    let mut overlaps = Overlaps::default();
    let mut pieces: Vec<RangePiece> = Vec::new();
    let mut put = |start: Vec<u8>, range: usize| {
        if pieces.last().is_some_and(|last| last.start == start) {
            pieces.pop();
        }
        pieces.push(RangePiece { start, range: range as u32 });
    };
    // The ranges around the present one, in the order of their beginnings.
    let mut around: Vec<usize> = Vec::new();
    let close = |around: &mut Vec<usize>, until: Option<&[u8]>, put: &mut dyn FnMut(Vec<u8>, usize)| {
        while let Some(&inner) = around.last() {
            if until.is_some_and(|until| ranges[inner].to[..] >= *until) {
                break;
            }
            let next = order.next(&ranges[inner].to);
            let is_over = |&outer: &usize| next.as_ref().is_none_or(|next| ranges[outer].to < *next);
            while around.pop_if(|outer| is_over(outer)).is_some() {}
            if let (Some(next), Some(&outer)) = (next, around.last()) {
                put(next, outer);
            }
        }
    };
    for (index, range) in ranges.iter().enumerate() {
        close(&mut around, Some(&range.from), &mut put);
        if let Some(&outer) = around.last()
            && ranges[outer].to < range.to
        {
            overlaps.first = if overlaps.pairs == 0 { [outer, index] } else { overlaps.first };
            overlaps.pairs += 1;
        }
        put(range.from.clone(), index);
        around.push(index);
    }
    close(&mut around, None, &mut put);
    (pieces, overlaps)
}

/// Returns the range of a record whose key has the columns `parts`: a network, or a first and a last key.
pub(super) fn range_of(
    parts: &[&[u8]],
    order: SortOrder,
    record: u32,
    row: u64,
) -> Result<InputRange, SortError> {
    let shown = |text: &[u8]| hush_ingest::shown_key(text);
    let refused = |text: &[u8], form| SortError::Key { row, key: shown(text), form };
    let [from, to] = match *parts {
        [network] => {
            let form = "a network, such as 192.0.2.0/24, without bits behind its length";
            SortOrder::encode_network(network).ok_or_else(|| refused(network, form))?
        }
        [from, to] => {
            let key = |text: &[u8]| match order.encode(text) {
                Some(mut key) => Ok(std::mem::take(&mut *key)),
                None => Err(refused(text, order.example())),
            };
            let ends = [key(from)?, key(to)?];
            if order == SortOrder::Ip && ends[0].len() != ends[1].len() {
                return Err(SortError::Families { row, from: shown(from), to: shown(to) });
            }
            if ends[0] > ends[1] {
                return Err(SortError::Backwards { row, from: shown(from), to: shown(to) });
            }
            ends
        }
        _ => return Err(SortError::Columns { given: parts.len() }),
    };
    Ok(InputRange { from, to, record })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: u8, to: u8) -> InputRange {
        let key = |number: u8| {
            std::mem::take(&mut *SortOrder::Number.encode(number.to_string().as_bytes()).unwrap())
        };
        InputRange { from: key(from), to: key(to), record: 0 }
    }

    #[test]
    fn each_key_is_in_the_range_that_begins_last() {
        let ranges = [
            range(0, 99),
            range(0, 9),
            range(10, 10),
            range(20, 60),
            range(30, 50),
            range(30, 40),
            range(45, 70),
            range(60, 60),
            range(90, 105),
            range(120, 120),
        ];
        let (pieces, overlaps) = pieces(&ranges, SortOrder::Number);
        assert_eq!(overlaps, Overlaps { pairs: 2, first: [4, 6] });
        assert!(pieces.is_sorted_by(|a, b| a.start < b.start));
        for number in 0..=130 {
            let key = range(number, number).from;
            let last = ranges.iter().rposition(|own| own.from <= key && key <= own.to);
            let at = pieces.partition_point(|piece| piece.start <= key);
            let found = at.checked_sub(1).map(|at| pieces[at].range as usize);
            assert_eq!(found.filter(|&own| key <= ranges[own].to), last, "{number}");
        }
        let [least, most] = [vec![0; 16], vec![0xff; 16]];
        let last = InputRange { from: most.clone(), to: most.clone(), record: 0 };
        let all = InputRange { from: least, to: most, record: 0 };
        assert_eq!(super::pieces(&[all, last], SortOrder::Number).0.len(), 2);
    }
}
