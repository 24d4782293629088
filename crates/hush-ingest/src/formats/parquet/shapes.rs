//! The structures of a Parquet file whose fields the reader trusts to have certain types. The reader skips all other structures, or
//! bounds them by the bytes that there are. Source: parquet.thrift of Apache Parquet 2.12.

use self::ThriftShape::{Binary, Bool, Byte, Int, Many, Struct};

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ThriftShape {
    Bool,
    Byte,
    /// An integer of 16, 32 or 64 bits; all are encoded alike.
    Int,
    Binary,
    Many(&'static ThriftShape),
    Struct(Fields),
}

/// The fields of a structure. Fields of later versions are not listed and may have any type.
pub(crate) type Fields = &'static [(i16, ThriftShape)];

/// `FileMetaData` up to its schema, into which the reader descends.
pub(crate) const METADATA: Fields = &[(1, Int), (2, Many(&Struct(SCHEMA_ELEMENT)))];

/// `PageHeader`.
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

/// A union. Most of its variants are empty structures.
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
