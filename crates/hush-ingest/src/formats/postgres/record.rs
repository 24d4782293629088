//! The conversion of rows of a server to records.

use std::{cell::Cell, path::PathBuf};

use hush_protocol::{
    schema::{ColumnType, Schema},
    wording::Wording,
};
use tokio_postgres::types::Type;

use super::row::{CellKind, NoCell, PostgresRow, column_type};
use crate::{
    IngestError, Place, Record,
    record::{cell::Cell as RowCell, projection::Projection},
};

/// The columns of rows, and the row that is converted.
pub(super) struct RowConverter {
    path: PathBuf,
    pub(super) projection: Projection,
    /// For each column its index in a row and its kind; `None` for a column not in use.
    columns: Vec<Option<(usize, CellKind)>>,
    /// The types of the columns.
    types: Vec<ColumnType>,
    /// Whether a column has had a value outside of its type, such as `infinity`.
    odd: Vec<Cell<bool>>,
    pub(super) row: PostgresRow,
    /// The number of the row, from 1.
    pub(super) number: u64,
}

/// Returns the types of columns as tables have them. The modifier holds the digits of numbers.
pub(super) fn types_of<'a>(columns: impl IntoIterator<Item = (&'a Type, i32)>) -> Vec<ColumnType> {
    columns.into_iter().map(|(own, modifier)| column_type(own, modifier)).collect()
}

impl RowConverter {
    pub(super) fn new(
        path: PathBuf,
        projection: Projection,
        columns: Vec<Option<(usize, CellKind)>>,
        types: Vec<ColumnType>,
    ) -> Self {
        let odd = types.iter().map(|_| Cell::new(false)).collect();
        Self { path, projection, columns, types, odd, row: PostgresRow::default(), number: 0 }
    }

    /// Returns the number of columns in use.
    pub(super) fn used(&self) -> usize {
        self.columns.iter().flatten().count()
    }

    /// Returns the columns in use. Those with an odd value have any type.
    pub(super) fn schema(&self) -> Schema {
        let own =
            |index: usize| if self.odd[index].get() { ColumnType::ANY } else { self.types[index].clone() };
        self.projection.clone().typed(own).schema()
    }

    fn place(&self) -> Place {
        Place { path: self.path.clone(), row: self.number, line: None }
    }

    /// Returns the error of the present row.
    pub(super) fn refused(&self, what: &str, advice: Wording) -> IngestError {
        IngestError::Postgres {
            path: self.path.clone(),
            message: format!("row {}{what}", self.number),
            advice,
        }
    }

    /// Converts the present row.
    pub(super) fn record(&self) -> Result<Record, IngestError> {
        self.projection.record(
            || self.place(),
            |column| {
                let (field, kind) = self.columns[column.index].expect("it is in use");
                let cell = self.row.cell(field, kind).inspect(|cell| {
                    if let (RowCell::Text(text), Some(own)) = (cell, self.types[column.index].plain())
                        && own.canonical(text.as_bytes()).is_none()
                    {
                        self.odd[column.index].set(true);
                    }
                });
                cell.map_err(|reason| match reason {
                    NoCell::Utf8 => {
                        IngestError::BadUtf8 { place: self.place(), column: Some(column.name.clone()) }
                    }
                    NoCell::Form => self.refused(
                        &format!(", column {:?}: the server writes it in another form", column.name),
                        Wording("convert it to text with {sql}"),
                    ),
                })
            },
        )
    }
}
