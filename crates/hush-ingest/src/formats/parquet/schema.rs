//! The columns of a Parquet file: flat ones, the fields of structs as `outer.inner`, and lists, maps and whole structs as nested
//! JSON.
//!
//! The Arrow reader gets each column as a separate schema without annotations, except those of numbers and times. Its arrays then
//! have exactly the groups of the file, and a [`Form`] says what they mean. With the annotations the reader would validate texts a
//! page at a time without naming the row, and drop digits of a decimal beyond its precision. It would change times of INT96 outside
//! of 1677 to 2262, and panic on damaged maps.
//!
//! Source: LogicalTypes.md of Apache Parquet 2.12 for lists and maps, and the layouts of older writers.

use std::{ops::Range, sync::Arc};

use arrow_schema::{DataType, Field as ArrowField, Schema};
use hush_protocol::{
    column_type::{PlainType, Unit},
    schema::ColumnType,
};
use parquet::{
    arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema},
    basic::{ConvertedType, LogicalType, Repetition, Type as Physical},
    errors::ParquetError,
    schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr},
};

use crate::formats::{arrow::types, parquet::form::Form};

/// The greatest scale of a decimal; 76 is the greatest in use.
const MAX_DECIMAL_SCALE: usize = 1000;
/// The greatest length of values of fixed length: that of a value of a table.
const MAX_FIXED_LENGTH: i32 = 16 << 20;
/// The length of a value of the type INT96.
const INT96_LENGTH: i32 = 12;

/// A column of the input.
#[derive(Clone, Debug)]
pub(crate) struct ParquetField {
    /// The path in the schema, joined by dots.
    pub(crate) name: String,
    /// The leaves of the column in the file's schema, counted from the left.
    pub(crate) leaves: Range<usize>,
    /// The meaning of the column's arrays.
    pub(crate) form: Form,
    /// The schema of a file that has no other column.
    root: TypePtr,
    /// The kind of the column, if a table cannot hold it.
    unsupported: Option<&'static str>,
    /// The number of digits of a decimal.
    precision: i32,
}

impl ParquetField {
    /// Refuses a column that a table cannot hold.
    ///
    /// # Errors
    /// The kind of the column, such as an interval.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        self.unsupported.map_or(Ok(()), Err)
    }

    /// Returns the schema of the arrays. In its arrays a long value that a page refers to many times is stored once.
    ///
    /// # Errors
    /// The reader has no array for a leaf.
    pub(crate) fn levels(&self) -> Result<FieldLevels, ParquetError> {
        let (schema, fields) = self.arrow_schema()?;
        let hint = fields.fields().iter().map(|field| compact(field)).collect();
        parquet_to_arrow_field_levels(&schema, ProjectionMask::all(), Some(&hint))
    }

    fn arrow_schema(&self) -> Result<(SchemaDescriptor, Schema), ParquetError> {
        let schema = SchemaDescriptor::new(self.root.clone());
        let fields = parquet_to_arrow_schema(&schema, None)?;
        Ok((schema, fields))
    }

    /// Returns the type, or `any` if a table has no such type.
    pub(crate) fn column_type(&self) -> ColumnType {
        let mut form = &self.form;
        while let Form::Inner(inner) = form {
            form = inner;
        }
        let own = match form {
            Form::Text => PlainType::TEXT,
            Form::Uuid => PlainType::Uuid,
            Form::Float16 => PlainType::Float(16),
            Form::Int96 => PlainType::Timestamp(Unit::Nano, None),
            Form::Decimal(scale) => {
                let (Ok(precision), Ok(scale)) = (self.precision.try_into(), (*scale).try_into()) else {
                    return ColumnType::ANY;
                };
                PlainType::Decimal { bits: if precision <= 38 { 128 } else { 256 }, precision, scale }
            }
            Form::Typed => return self.typed().unwrap_or(ColumnType::ANY),
            _ => return ColumnType::ANY,
        };
        // The type is parsed again, since a descriptor does not allow every number of digits.
        own.to_string().parse().map_or(ColumnType::ANY, ColumnType::Plain)
    }

    /// Returns the Arrow type of the only leaf.
    fn typed(&self) -> Option<ColumnType> {
        let (_, schema) = self.arrow_schema().ok()?;
        let mut field = schema.fields().first()?;
        while let DataType::Struct(members) = field.data_type() {
            field = members.first()?;
        }
        Some(types::column_type(field))
    }
}

/// Returns a field whose arrays store each value once, however often a page refers to it: views, and dictionaries for values of
/// fixed length. In these an index beyond its dictionary is an error; in plain arrays of fixed length it would be a panic.
fn compact(field: &ArrowField) -> ArrowField {
    let own = match field.data_type() {
        DataType::Binary => DataType::BinaryView,
        fixed @ DataType::FixedSizeBinary(_) => {
            DataType::Dictionary(DataType::Int32.into(), fixed.clone().into())
        }
        DataType::List(element) => DataType::List(Arc::new(compact(element))),
        DataType::Struct(members) => DataType::Struct(members.iter().map(|member| compact(member)).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(own)
}

/// Returns the columns of a file: each list, each map, and each leaf outside of them. A struct that `asked` names is also a column
/// as a whole, beside its fields.
///
/// # Errors
/// A group has no fields.
pub(crate) fn fields(
    schema: &SchemaDescriptor,
    asked: impl Fn(&str) -> bool,
) -> Result<Vec<ParquetField>, ParquetError> {
    let mut walk =
        SchemaWalk { schema, asked, next_leaf: 0, unsupported: None, above: Vec::new(), all: Vec::new() };
    walk.columns(schema.root_schema().get_fields())?;
    Ok(walk.all)
}

struct SchemaWalk<'s, F> {
    schema: &'s SchemaDescriptor,
    asked: F,
    next_leaf: usize,
    /// The kind of the last leaf, if it has no form as a value.
    unsupported: Option<&'static str>,
    /// The structs around the current field.
    above: Vec<&'s Type>,
    all: Vec<ParquetField>,
}

impl<'s, F: Fn(&str) -> bool> SchemaWalk<'s, F> {
    fn columns(&mut self, types: &'s [TypePtr]) -> Result<(), ParquetError> {
        for field in types {
            if !is_struct(field) {
                self.column(field)?;
                continue;
            }
            let first_leaf = self.next_leaf;
            if (self.asked)(&self.name(field)) {
                self.column(field)?;
                self.next_leaf = first_leaf;
            }
            self.above.push(field);
            self.columns(field.get_fields())?;
            self.above.pop();
        }
        Ok(())
    }

    fn name(&self, field: &Type) -> String {
        let names: Vec<&str> = self.above.iter().copied().chain([field]).map(|group| group.name()).collect();
        names.join(".")
    }

    /// Adds a column.
    fn column(&mut self, field: &Type) -> Result<(), ParquetError> {
        let first_leaf = self.next_leaf;
        self.unsupported = None;
        let (mut own, mut form) = self.field(field)?;
        let precision =
            if field.is_primitive() { self.schema.column(first_leaf).type_precision() } else { 0 };
        for group in self.above.iter().rev() {
            own = group_of(group, vec![own])?;
            form = Form::Inner(form.into());
        }
        self.all.push(ParquetField {
            name: self.name(field),
            leaves: first_leaf..self.next_leaf,
            form,
            root: Type::group_type_builder("schema").with_fields(vec![own]).build()?.into(),
            unsupported: self.unsupported,
            precision,
        });
        Ok(())
    }

    /// Returns a field without annotations, and the form of its arrays.
    fn field(&mut self, field: &Type) -> Result<(TypePtr, Form), ParquetError> {
        let (own, form) = self.body(field)?;
        // A repeated field that is not part of a list is a list that is never null.
        Ok((own, if is_repeated(field) { Form::Array(form.into()) } else { form }))
    }

    /// Returns a field, or the element of a repeated field, without annotations, and the form of its arrays.
    fn body(&mut self, field: &Type) -> Result<(TypePtr, Form), ParquetError> {
        if field.is_primitive() {
            return self.leaf(field);
        }
        let repeated = match field.get_fields() {
            [repeated] if is_repeated(repeated) => repeated,
            _ => return self.object(field),
        };
        let (inner, form) = match annotation(field) {
            Some(Annotation::List) => {
                let (inner, element) = match has_element(field, repeated) {
                    // The element is the only field of the repeated group.
                    true => match self.object(repeated)? {
                        (inner, Form::Object(mut members)) => (inner, Form::Inner(members.remove(0).into())),
                        other => other,
                    },
                    false => self.body(repeated)?,
                };
                (inner, Form::Array(element.into()))
            }
            Some(Annotation::Map) if repeated.is_group() => match repeated.get_fields().len() {
                1 | 2 => match self.object(repeated)? {
                    (inner, Form::Object(members)) => (inner, Form::Map(members)),
                    other => other,
                },
                _ => {
                    let (inner, element) = self.body(repeated)?;
                    (inner, Form::Array(element.into()))
                }
            },
            _ => return self.object(field),
        };
        Ok((group_of(field, vec![inner])?, Form::Inner(form.into())))
    }

    /// Returns a group as a struct without annotations, and the form of its arrays.
    fn object(&mut self, group: &Type) -> Result<(TypePtr, Form), ParquetError> {
        let members = group.get_fields().iter().map(|member| self.field(member));
        let (members, forms): (Vec<_>, Vec<_>) = members.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        if members.is_empty() {
            return Err(ParquetError::General(format!("the group \"{}\" has no fields", group.name())));
        }
        Ok((group_of(group, members)?, Form::Object(forms)))
    }

    fn leaf(&mut self, field: &Type) -> Result<(TypePtr, Form), ParquetError> {
        let column = self.schema.column(self.next_leaf);
        self.next_leaf += 1;
        let form = form(&column).unwrap_or_else(|unsupported| {
            self.unsupported = Some(unsupported);
            Form::Typed
        });
        if form == Form::Typed && is_number_or_time(&column) {
            return Ok((field.clone().into(), form));
        }
        let (physical, length) = match column.physical_type() {
            Physical::INT96 => (Physical::FIXED_LEN_BYTE_ARRAY, INT96_LENGTH),
            physical => (physical, column.type_length()),
        };
        let own = Type::primitive_type_builder(field.name(), physical)
            .with_repetition(field.get_basic_info().repetition())
            .with_length(length)
            .build()?;
        Ok((own.into(), form))
    }
}

/// Returns the form of the values of a leaf. If the values have no form, the error is the kind of the leaf in words.
fn form(column: &ColumnDescriptor) -> Result<Form, &'static str> {
    use ConvertedType as C;
    use LogicalType as L;
    if column.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY
        && !(1..=MAX_FIXED_LENGTH).contains(&column.type_length())
    {
        return Err("of values of no bytes, or of more than 16 MiB");
    }
    Ok(match (column.logical_type_ref(), column.converted_type()) {
        (Some(L::String | L::Enum | L::Json), _) | (None, C::UTF8 | C::ENUM | C::JSON) => Form::Text,
        (Some(L::Decimal(_)), _) | (None, C::DECIMAL) => match usize::try_from(column.type_scale()) {
            Ok(scale) if scale <= MAX_DECIMAL_SCALE => Form::Decimal(scale),
            _ => return Err("a decimal of too many digits"),
        },
        (Some(L::Uuid), _) => Form::Uuid,
        (Some(L::Float16), _) => Form::Float16,
        (None, C::INTERVAL) => return Err("an interval"),
        _ if column.physical_type() == Physical::INT96 => Form::Int96,
        _ => Form::Typed,
    })
}

/// Returns whether the reader keeps the annotation of a leaf.
fn is_number_or_time(column: &ColumnDescriptor) -> bool {
    use ConvertedType as C;
    use LogicalType as L;
    match column.logical_type_ref() {
        Some(L::Integer(_) | L::Date | L::Time(_) | L::Timestamp(_)) => true,
        Some(_) => false,
        None => !matches!(column.converted_type(), C::NONE | C::BSON | C::INTERVAL),
    }
}

/// Returns a group with the name and repetition of `group`, with these fields and no annotation.
fn group_of(group: &Type, fields: Vec<TypePtr>) -> Result<TypePtr, ParquetError> {
    let own = Type::group_type_builder(group.name()).with_repetition(group.get_basic_info().repetition());
    Ok(own.with_fields(fields).build()?.into())
}

enum Annotation {
    List,
    Map,
}

fn annotation(group: &Type) -> Option<Annotation> {
    let info = group.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::List), _) | (None, ConvertedType::LIST) => Some(Annotation::List),
        (Some(LogicalType::Map), _) | (None, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) => {
            Some(Annotation::Map)
        }
        _ => None,
    }
}

fn is_repeated(field: &Type) -> bool {
    field.get_basic_info().repetition() == Repetition::REPEATED
}

/// Returns whether the fields of a group are columns in their own right.
fn is_struct(field: &Type) -> bool {
    field.is_group() && !is_repeated(field) && annotation(field).is_none()
}

/// Returns whether the repeated field of a list is a group around the element. Older writers put the element itself there.
fn has_element(list: &Type, repeated: &Type) -> bool {
    repeated.is_group()
        && repeated.get_fields().len() == 1
        && repeated.name() != "array"
        && repeated.name() != format!("{}_tuple", list.name())
}
