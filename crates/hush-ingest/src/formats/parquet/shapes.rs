//! The structures of a Parquet file's metadata that its reader reads: which fields have which types. Source: parquet.thrift of
//! Apache Parquet 2.12.

use self::ThriftShape::{Binary, Bool, Byte, Double, Int, Many, Struct};

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ThriftShape {
    Bool,
    Byte,
    /// An integer of 16, 32 or 64 bits, which are encoded alike.
    Int,
    Double,
    Binary,
    Many(&'static ThriftShape),
    Struct(Fields),
}

/// The fields of a structure. Others, of later versions, may have any type.
pub(crate) type Fields = &'static [(i16, ThriftShape)];

/// `FileMetaData`.
#[rustfmt::skip] // a list, not a column; below as well
pub(crate) const METADATA: Fields = &[
    (1, Int), (2, Many(&Struct(SCHEMA_ELEMENT))), (3, Int), (4, Many(&Struct(ROW_GROUP))), (5, Many(&Struct(KEY_VALUE))), (6, Binary),
    (7, Many(&Struct(COLUMN_ORDER))), (8, Struct(&[])), (9, Binary),
];

/// `PageHeader`. The reader passes over its statistics.
pub(crate) const PAGE_HEADER: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    (5, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int)])),
    (6, Struct(&[])),
    (7, Struct(&[(1, Int), (2, Int), (3, Bool)])),
    (8, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int), (5, Int), (6, Int), (7, Bool)])),
];

const SCHEMA_ELEMENT: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Binary),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Struct(LOGICAL_TYPE)),
];

/// A union, most of whose variants are empty structures.
const LOGICAL_TYPE: Fields = &[
    (1, Struct(&[])),
    (2, Struct(&[])),
    (3, Struct(&[])),
    (4, Struct(&[])),
    (5, Struct(&[(1, Int), (2, Int)])),
    (6, Struct(&[])),
    (7, Struct(TIME)),
    (8, Struct(TIME)),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, Struct(&[])),
    (12, Struct(&[])),
    (13, Struct(&[])),
    (14, Struct(&[])),
    (15, Struct(&[])),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Int)])),
    (19, Struct(&[])),
];

const TIME: Fields = &[(1, Bool), (2, Struct(&[(1, Struct(&[])), (2, Struct(&[])), (3, Struct(&[]))]))];

const COLUMN_ORDER: Fields = &[(1, Struct(&[])), (2, Struct(&[])), (3, Struct(&[]))];

const KEY_VALUE: Fields = &[(1, Binary), (2, Binary)];

#[rustfmt::skip]
const ROW_GROUP: Fields = &[
    (1, Many(&Struct(COLUMN_CHUNK))), (2, Int), (3, Int), (4, Many(&Struct(&[(1, Int), (2, Bool), (3, Bool)]))), (5, Int), (6, Int), (7, Int),
];

#[rustfmt::skip]
const COLUMN_CHUNK: Fields = &[
    (1, Binary), (2, Int), (3, Struct(COLUMN_METADATA)), (4, Int), (5, Int), (6, Int), (7, Int), (8, Struct(&[])), (9, Binary),
];

#[rustfmt::skip]
const COLUMN_METADATA: Fields = &[
    (1, Int), (2, Many(&Int)), (3, Many(&Binary)), (4, Int), (5, Int), (6, Int), (7, Int), (8, Many(&Struct(KEY_VALUE))), (9, Int),
    (10, Int), (11, Int), (12, Struct(STATISTICS)), (13, Many(&Struct(&[(1, Int), (2, Int), (3, Int)]))), (14, Int), (15, Int),
    (16, Struct(&[(1, Int), (2, Many(&Int)), (3, Many(&Int))])), (17, Struct(&[(1, Struct(BOX)), (2, Many(&Int))])),
];

const STATISTICS: Fields =
    &[(1, Binary), (2, Binary), (3, Int), (4, Int), (5, Binary), (6, Binary), (7, Bool), (8, Bool), (9, Int)];

const BOX: Fields =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];
