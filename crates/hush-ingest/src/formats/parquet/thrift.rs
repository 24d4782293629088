//! The metadata of a Parquet file, checked before its reader sees it.
//!
//! The reader counts up to the length of a list whose elements take no byte, and descends as deep as a schema says. It also reads a
//! field as the type that the field should have, whatever type the file states. This module walks a structure of the Thrift compact
//! protocol as the reader will understand it, in time linear in its bytes. Source: Thrift, "Compact protocol encoding".

use crate::formats::parquet::shapes::{Fields, METADATA, ThriftShape};

/// The deepest nesting: far beyond that of any real file, and harmless for the stack.
const MAX_DEPTH: usize = 32;
/// The deepest schema.
const MAX_SCHEMA_DEPTH: usize = 100;

/// The number that marks the start of an inner structure. No field has this number.
const START: i16 = i16::MIN;

/// The reason why metadata is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The metadata goes on behind the given bytes.
    Ends,
    /// The metadata has something that no writer writes.
    Odd(&'static str),
}

/// A number in a structure or in one directly inside of it, alone or in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    /// The field of the outer structure that holds the inner one; 0 for a field of the outer structure.
    pub(crate) outer: i16,
    /// The field of the number; [`START`] marks the beginning of an inner structure, and no number.
    pub(crate) field: i16,
    /// The value of the number.
    pub(crate) value: i64,
}

impl Number {
    /// Returns the low 32 bits. The reader uses no others of a field of 32 bits.
    pub(crate) fn low_bits(&self) -> i32 {
        self.value as i32
    }
}

/// Walks the structure at the start of `bytes`, which has these fields. Returns its numbers, including those of the first inner
/// structures.
///
/// # Errors
/// [`Malformed`] if the structure is cut off or nested too deep, or has a field of another type or a list that cannot fit.
pub(crate) fn numbers(bytes: &[u8], fields: Fields) -> Result<Vec<Number>, Malformed> {
    let mut walk = ThriftWalk { rest: bytes, numbers: Vec::new() };
    walk.structure(fields, 0, 0)?;
    Ok(walk.numbers)
}

/// Refuses bytes that are not the metadata of a file, and a schema that is nested too deep.
pub(crate) fn check_metadata(bytes: &[u8]) -> Result<(), Malformed> {
    const SCHEMA: i16 = 2;
    const CHILDREN: i16 = 5;
    // The number of children of each element of the schema, depth first.
    let mut elements: Vec<i64> = Vec::new();
    for number in numbers(bytes, METADATA)?.iter().filter(|number| number.outer == SCHEMA) {
        match (number.field, elements.last_mut()) {
            (START, _) => elements.push(0),
            (CHILDREN, Some(children)) => *children = i64::from(number.low_bits()),
            _ => {}
        }
    }
    if elements.iter().any(|&children| children > elements.len() as i64) {
        return Err(Malformed::Odd("the schema has fewer elements than it says"));
    }
    // The number of elements still to come in each group around the next one.
    let mut around: Vec<i64> = Vec::new();
    for children in elements {
        if let Some(left) = around.last_mut() {
            *left -= 1;
        }
        if children > 0 {
            around.push(children);
        }
        while around.last() == Some(&0) {
            around.pop();
        }
        if around.len() > MAX_SCHEMA_DEPTH {
            return Err(Malformed::Odd("the schema is nested too deep"));
        }
    }
    Ok(())
}

struct ThriftWalk<'a> {
    rest: &'a [u8],
    numbers: Vec<Number>,
}

/// The types of the compact protocol that matter here.
mod kind {
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const BYTE: u8 = 3;
    pub(crate) const I16: u8 = 4;
    pub(crate) const I64: u8 = 6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const MAP: u8 = 11;
    pub(crate) const STRUCTURE: u8 = 12;
    pub(crate) const UUID: u8 = 13;
}

impl ThriftShape {
    /// Returns whether a value of this shape has the type `kind`.
    fn is(self, kind: u8) -> bool {
        match self {
            Self::Bool => matches!(kind, kind::TRUE | kind::FALSE),
            Self::Byte => kind == kind::BYTE,
            Self::Int => (kind::I16..=kind::I64).contains(&kind),
            Self::Double => kind == kind::DOUBLE,
            Self::Binary => kind == kind::BINARY,
            Self::Many(_) => kind == kind::LIST,
            Self::Struct(_) => kind == kind::STRUCTURE,
        }
    }
}

impl ThriftWalk<'_> {
    fn structure(&mut self, fields: Fields, outer: i16, depth: usize) -> Result<(), Malformed> {
        let mut field = 0i16;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == 0 {
                return Ok(());
            }
            field = match head >> 4 {
                0 => unzigzag(self.number()?) as i16,
                delta => field.saturating_add(i16::from(delta)),
            };
            let shape = fields.iter().find(|(own, _)| *own == field).map(|(_, shape)| *shape);
            if shape.is_some_and(|shape| !shape.is(kind)) {
                return Err(Malformed::Odd("its metadata has a field of another type"));
            }
            // The type of a boolean field is its value.
            if !matches!(kind, kind::TRUE | kind::FALSE) {
                self.value(kind, shape, [outer, field], depth)?;
            }
        }
    }

    /// Walks a value of the field `field` of a structure, which is the field `outer` of another. `depth` levels are around it. If
    /// the field is known, the value has its shape.
    fn value(
        &mut self,
        kind: u8,
        shape: Option<ThriftShape>,
        [outer, field]: [i16; 2],
        depth: usize,
    ) -> Result<(), Malformed> {
        if depth > MAX_DEPTH {
            return Err(Malformed::Odd("its metadata is nested too deep"));
        }
        match kind {
            kind::BYTE => self.skip(1),
            kind::I16..=kind::I64 => {
                let value = unzigzag(self.number()?);
                if depth <= 1 {
                    self.numbers.push(Number { outer, field, value });
                }
                Ok(())
            }
            kind::DOUBLE => self.skip(8),
            kind::BINARY => {
                let length = self.number()?;
                self.skip(length)
            }
            kind::LIST | kind::SET => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                let shape = if let Some(ThriftShape::Many(shape)) = shape { Some(*shape) } else { None };
                if length > 0 && shape.is_some_and(|shape| !shape.is(head & 15)) {
                    return Err(Malformed::Odd("its metadata has a list of another type"));
                }
                self.elements(length, &[head & 15], shape, [outer, field], depth)
            }
            kind::MAP => match self.number()? {
                0 => Ok(()),
                length => {
                    let kinds = self.byte()?;
                    self.elements(length, &[kinds >> 4, kinds & 15], None, [outer, field], depth)
                }
            },
            kind::STRUCTURE => {
                let fields: Fields = if let Some(ThriftShape::Struct(fields)) = shape { fields } else { &[] };
                if depth > 0 {
                    return self.structure(fields, outer, depth + 1);
                }
                self.numbers.push(Number { outer: field, field: START, value: 0 });
                self.structure(fields, field, 1)
            }
            kind::UUID => self.skip(16),
            _ => Err(Malformed::Odd("its metadata has a value of no type")),
        }
    }

    fn elements(
        &mut self,
        length: u64,
        kinds: &[u8],
        shape: Option<ThriftShape>,
        at: [i16; 2],
        depth: usize,
    ) -> Result<(), Malformed> {
        // A boolean takes a byte, but the reader does not know that where it skips a list.
        if length > 0 && kinds.iter().any(|kind| matches!(*kind, kind::TRUE | kind::FALSE)) {
            return Err(Malformed::Odd("its metadata has a list of booleans"));
        }
        // Every other value takes at least one byte.
        if length > self.rest.len() as u64 {
            return Err(Malformed::Ends);
        }
        for _ in 0..length {
            for kind in kinds {
                // A structure in a list is at the level of the list; a list in a list is a level deeper.
                let is_structure = *kind == kind::STRUCTURE;
                self.value(*kind, shape, at, if is_structure { depth } else { depth + 1 })?;
            }
        }
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed::Ends)?;
        self.rest = rest;
        Ok(*first)
    }

    fn skip(&mut self, length: u64) -> Result<(), Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed::Ends)?;
        self.rest = self.rest.get(length..).ok_or(Malformed::Ends)?;
        Ok(())
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed::Odd("its metadata has a number of too many digits"))
    }
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::parquet::shapes::PAGE_HEADER;

    /// Returns the numbers of a structure without known fields.
    fn any_numbers(bytes: &[u8]) -> Result<Vec<Number>, Malformed> {
        numbers(bytes, &[])
    }

    /// Encodes the head of a list of `length` elements, as the field after the last one.
    fn list(kind: u8, length: u32) -> Vec<u8> {
        let digits = (0..5).map(|at| (length >> (7 * at)) as u8 & 0x7f | if at < 4 { 0x80 } else { 0 });
        [0x19, 0xf0 | kind].into_iter().chain(digits).collect()
    }

    #[test]
    fn numbers_are_found_two_levels_deep() {
        // 1: -3, 2: [{5: 4}, {}], 3: {1: {1: 7}, 2: 1}, 4: "ab", 5: true, 6: {"a": 1}
        let bytes = [
            &[0x15, 5, 0x19, 0x2c, 0x55, 8, 0, 0, 0x1c, 0x1c, 0x15, 14, 0, 0x15, 2, 0][..],
            &[0x18, 2, b'a', b'b', 0x11, 0x1b, 1, 0x85, 1, b'a', 2, 0, 99],
        ];
        let number = |outer, field, value| Number { outer, field, value };
        let two = number(2, 5, 4);
        let start = |outer| number(outer, START, 0);
        let expected =
            [number(0, 1, -3), start(2), two, start(2), start(3), number(3, 2, 1), number(0, 6, 1)];
        assert_eq!(any_numbers(&bytes.concat()), Ok(expected.to_vec()));
        for end in 0..bytes.concat().len() - 1 {
            assert_eq!(any_numbers(&bytes.concat()[..end]), Err(Malformed::Ends), "cut at {end}");
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        for kind in [kind::BYTE, kind::I64, kind::DOUBLE, kind::BINARY, kind::STRUCTURE, kind::UUID] {
            assert_eq!(any_numbers(&[list(kind, u32::MAX), vec![0; 100]].concat()), Err(Malformed::Ends));
        }
        for kind in [kind::TRUE, kind::FALSE] {
            assert!(matches!(any_numbers(&[list(kind, 1), vec![0; 100]].concat()), Err(Malformed::Odd(_))));
        }
        assert_eq!(
            any_numbers(&[0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Err(Malformed::Ends)
        );
        assert!(matches!(any_numbers(&[vec![0x16], vec![0xff; 20]].concat()), Err(Malformed::Odd(_))));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let nested = |depth: usize| [vec![0x1c; depth], vec![0; depth + 1]].concat();
        assert!(any_numbers(&nested(MAX_DEPTH)).is_ok());
        let lists = [vec![0x19], vec![0x19; 1_000_000]].concat();
        for bytes in [nested(1_000_000), lists] {
            assert!(matches!(any_numbers(&bytes), Err(Malformed::Odd(_))));
        }
    }

    /// Encodes metadata that has only a schema, whose elements have these numbers of children.
    fn schema(children: &[i32]) -> Vec<u8> {
        let elements = children.iter().flat_map(|&children| {
            let digits = (children << 1) as u32;
            [0x55, digits as u8 & 0x7f | 0x80, (digits >> 7) as u8 & 0x7f | 0x80, (digits >> 14) as u8, 0]
        });
        let mut bytes = [vec![0x15, 2], list(kind::STRUCTURE, children.len() as u32)].concat();
        bytes.extend(elements);
        bytes.push(0);
        bytes
    }

    #[test]
    fn schemas_are_wide_or_a_little_deep() {
        let groups = |depth: usize| [vec![1; depth], vec![0]].concat();
        assert_eq!(check_metadata(&schema(&groups(MAX_SCHEMA_DEPTH))), Ok(()));
        assert!(matches!(check_metadata(&schema(&groups(MAX_SCHEMA_DEPTH + 1))), Err(Malformed::Odd(_))));
        // A thousand groups of two, each within the root.
        let wide = [vec![1000], [2, 0, 0].repeat(1000)].concat();
        assert_eq!(check_metadata(&schema(&wide)), Ok(()));
        assert!(matches!(check_metadata(&schema(&[10, 0])), Err(Malformed::Odd(_))));
    }

    /// The reader would take the length of a text for a number, and continue in the middle of it.
    #[test]
    fn fields_have_the_types_that_they_should_have() {
        let header = [0x15, 4, 0x15, 2, 0x15, 2, 0x4c, 0x15, 2, 0x15, 0, 0x11, 0, 0];
        assert_eq!(numbers(&header, PAGE_HEADER).map(|numbers| numbers.len()), Ok(6));
        let changed = |at: usize, byte: u8| {
            let mut changed = header.to_vec();
            changed[at] = byte;
            numbers(&changed, PAGE_HEADER)
        };
        for (at, byte) in [(0, 0x18), (2, 0x13), (4, 0x11), (6, 0x48), (7, 0x17), (11, 0x15)] {
            assert!(matches!(changed(at, byte), Err(Malformed::Odd(_))), "{byte} at {at}");
        }
        let texts = [0x29, 0x18, 2, b'a', b'b', 0];
        assert!(any_numbers(&texts).is_ok());
        assert_eq!(check_metadata(&texts), Err(Malformed::Odd("its metadata has a list of another type")));
        // Of the file, and of a row group: the number of rows, and the bytes.
        let rows = [0x15, 2, 0x28, 2, b'a', b'b', 0];
        let bytes = [0x15, 2, 0x39, 0x1c, 0x28, 2, b'a', b'b', 0, 0];
        for numbers in [&rows[..], &bytes] {
            let odd = Malformed::Odd("its metadata has a field of another type");
            assert_eq!(check_metadata(numbers), Err(odd));
        }
    }
}
