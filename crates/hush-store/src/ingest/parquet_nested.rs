//! The fields of a Parquet file as columns: flat ones, and lists, maps and whole structs as one value each, nested JSON.
//!
//! A leaf of the schema is stored with two levels for every entry: how much of its path is there (definition), and at which list
//! it goes on (repetition). Source: Dremel (Melnik et al., VLDB 2010), section 4; LogicalTypes.md of Apache Parquet 2.12 for lists
//! and maps, and how older writers laid them out.

use std::ops::Range;

use hush_protocol::fields::append_json_string;
use parquet::{
    basic::{ConvertedType, LogicalType, Repetition},
    schema::types::{SchemaDescriptor, Type, TypePtr},
};

/// Something that is there from a definition level on.
type Level = i16;

/// A column of the input: what it is made of.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// The path in the schema, joined by dots.
    pub(super) name: String,
    pub(super) node: Node,
}

/// A part of the schema. Leaves are counted from the left.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The leaves below it, at least one.
    pub(super) leaves: Range<usize>,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Leaf,
    Struct {
        /// Below this level it is null.
        there: Level,
        /// `"name":` and the member.
        members: Vec<(Vec<u8>, Node)>,
    },
    Many {
        many: Many,
        element: Box<Node>,
    },
    Map {
        many: Many,
        key: Box<Node>,
        value: Option<Box<Node>>,
    },
}

/// When there is a list or a map, and where it goes on.
#[derive(Clone, Copy, Debug)]
struct Many {
    /// Below this definition level it is null.
    there: Level,
    /// The definition level of an element that is there.
    element: Level,
    /// The repetition level of elements after the first.
    goes_on: Level,
}

/// The levels at a part of the schema.
#[derive(Clone, Copy)]
struct Levels {
    definition: Level,
    repetition: Level,
}

/// The columns of a file: those of all of its leaves, where no list or map is above them; in place of the others, the list or map.
/// A struct that `asked` names comes whole, beside its fields.
///
/// # Errors
/// The name of a group without fields.
pub(super) fn fields(schema: &SchemaDescriptor, asked: impl Fn(&str) -> bool) -> Result<Vec<Field>, String> {
    let (mut all, mut walk) = (Vec::new(), Walk { next_leaf: 0 });
    let top = Levels { definition: 0, repetition: 0 };
    walk.fields(schema.root_schema().get_fields(), "", top, &asked, &mut all)?;
    Ok(all)
}

struct Walk {
    next_leaf: usize,
}

impl Walk {
    fn fields(
        &mut self,
        types: &[TypePtr],
        prefix: &str,
        levels: Levels,
        asked: &impl Fn(&str) -> bool,
        all: &mut Vec<Field>,
    ) -> Result<(), String> {
        for field in types {
            let name = format!("{prefix}{}", field.name());
            if is_struct(field) {
                let first_leaf = self.next_leaf;
                if asked(&name) {
                    all.push(Field { node: self.node(field, levels)?, name: name.clone() });
                    self.next_leaf = first_leaf;
                }
                let below = levels.optional(field);
                self.fields(field.get_fields(), &format!("{name}."), below, asked, all)?;
            } else {
                all.push(Field { node: self.node(field, levels)?, name });
            }
        }
        Ok(())
    }

    /// A field of a group that is at `levels`.
    fn node(&mut self, field: &Type, levels: Levels) -> Result<Node, String> {
        if field.get_basic_info().repetition() != Repetition::REPEATED {
            return self.body(field, levels.optional(field));
        }
        // A repeated field that is not part of a list: one that is never null.
        let (many, below) = levels.many();
        let element = self.body(field, below)?;
        Ok(Node { leaves: element.leaves.clone(), shape: Shape::Many { many, element: Box::new(element) } })
    }

    /// The same, once it is there.
    fn body(&mut self, field: &Type, levels: Levels) -> Result<Node, String> {
        let first = self.next_leaf;
        if field.is_primitive() {
            self.next_leaf += 1;
            return Ok(Node { leaves: first..first + 1, shape: Shape::Leaf });
        }
        let shape = match (annotation(field), field.get_fields()) {
            (Some(Annotation::List), [repeated]) if is_repeated(repeated) => {
                let (many, below) = levels.many();
                let element = match element_of(field, repeated) {
                    Some(element) => self.node(element, below)?,
                    None => self.body(repeated, below)?,
                };
                Shape::Many { many, element: Box::new(element) }
            }
            (Some(Annotation::Map), [repeated]) if is_repeated(repeated) && repeated.is_group() => {
                let (many, below) = levels.many();
                match repeated.get_fields() {
                    [key] => Shape::Map { many, key: Box::new(self.node(key, below)?), value: None },
                    [key, value] => Shape::Map {
                        many,
                        key: Box::new(self.node(key, below)?),
                        value: Some(Box::new(self.node(value, below)?)),
                    },
                    _ => Shape::Many { many, element: Box::new(self.body(repeated, below)?) },
                }
            }
            (_, members) => {
                let member = |member: &TypePtr| {
                    let mut name = Vec::new();
                    append_json_string(member.name(), &mut name);
                    name.push(b':');
                    Ok((name, self.node(member, levels)?))
                };
                let members = members.iter().map(member).collect::<Result<_, String>>()?;
                Shape::Struct { there: levels.definition, members }
            }
        };
        if self.next_leaf == first {
            return Err(field.name().to_owned());
        }
        Ok(Node { leaves: first..self.next_leaf, shape })
    }
}

impl Levels {
    /// At a field that may be null.
    fn optional(self, field: &Type) -> Self {
        let is_optional = field.get_basic_info().repetition() == Repetition::OPTIONAL;
        Self { definition: self.definition + Level::from(is_optional), ..self }
    }

    /// At the elements of a list that is here.
    fn many(self) -> (Many, Self) {
        let below = Self { definition: self.definition + 1, repetition: self.repetition + 1 };
        let many = Many { there: self.definition, element: below.definition, goes_on: below.repetition };
        (many, below)
    }
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

/// Whether its fields are columns of their own.
fn is_struct(field: &Type) -> bool {
    field.is_group() && !is_repeated(field) && annotation(field).is_none()
}

/// The element in the repeated group of a list; `None` if the repeated field is the element itself, as older writers have it.
fn element_of<'t>(list: &Type, repeated: &'t Type) -> Option<&'t Type> {
    if repeated.is_primitive()
        || repeated.name() == "array"
        || repeated.name() == format!("{}_tuple", list.name())
    {
        return None;
    }
    match repeated.get_fields() {
        [element] => Some(element),
        _ => None,
    }
}

/// The entries of leaves, by number.
pub(super) trait Entries {
    /// The entries of a row.
    fn row(&self, leaf: usize, row: usize) -> Range<usize>;

    /// Definition and repetition level of an entry.
    fn levels(&self, leaf: usize, entry: usize) -> (Level, Level);

    /// Appends the value of an entry, which may be null, as JSON.
    ///
    /// # Errors
    /// If it is text and not UTF-8.
    fn append_json(&self, leaf: usize, entry: usize, out: &mut Vec<u8>) -> Result<(), NotJson>;

    /// Appends the value of an entry as the name of a member: a JSON string.
    ///
    /// # Errors
    /// As [`Entries::append_json`].
    fn append_name(&self, leaf: usize, entry: usize, out: &mut Vec<u8>) -> Result<(), NotJson>;
}

/// Why a value has no JSON form.
#[derive(Debug)]
pub(super) enum NotJson {
    /// Text that is not UTF-8.
    Utf8,
    /// Leaves of one list have other numbers of entries.
    Damaged,
}

impl NotJson {
    /// What [`NotJson::Damaged`] means.
    pub(super) const MESSAGE: &'static str = "the columns of a list or a map do not fit together";
}

impl Node {
    /// Whether it is a single leaf, whose values have other forms than JSON.
    pub(super) fn is_leaf(&self) -> bool {
        matches!(self.shape, Shape::Leaf)
    }

    /// The value at `row`: `None` if it is null; cut off where it is longer than `most` bytes, and is too long in any case.
    ///
    /// # Errors
    /// [`NotJson`].
    pub(super) fn value(
        &self,
        entries: &impl Entries,
        row: usize,
        most: usize,
    ) -> Result<Option<Vec<u8>>, NotJson> {
        let places = self.leaves.clone().map(|leaf| entries.row(leaf, row));
        let mut assembly = Assembly {
            entries,
            first_leaf: self.leaves.start,
            places: places.collect(),
            out: Vec::new(),
            most,
        };
        if assembly.definition(self)? < self.there() {
            return Ok(None);
        }
        assembly.append(self)?;
        let is_all = assembly.places.iter().all(Range::is_empty) || assembly.is_too_long();
        if is_all { Ok(Some(assembly.out)) } else { Err(NotJson::Damaged) }
    }

    /// The definition level below which it is null.
    fn there(&self) -> Level {
        match &self.shape {
            Shape::Leaf => 0,
            Shape::Struct { there, .. } => *there,
            Shape::Many { many, .. } | Shape::Map { many, .. } => many.there,
        }
    }
}

/// A value that is put together.
struct Assembly<'a, E> {
    entries: &'a E,
    first_leaf: usize,
    /// What is left of the row, of every leaf.
    places: Vec<Range<usize>>,
    out: Vec<u8>,
    most: usize,
}

impl<E: Entries> Assembly<'_, E> {
    fn is_too_long(&self) -> bool {
        self.out.len() > self.most
    }

    /// The next entry of a leaf, which is then taken.
    fn take(&mut self, leaf: usize) -> Result<usize, NotJson> {
        self.places[leaf - self.first_leaf].next().ok_or(NotJson::Damaged)
    }

    /// The definition level of the next entry: that of the first leaf.
    fn definition(&self, node: &Node) -> Result<Level, NotJson> {
        let place = &self.places[node.leaves.start - self.first_leaf];
        if place.is_empty() {
            return Err(NotJson::Damaged);
        }
        Ok(self.entries.levels(node.leaves.start, place.start).0)
    }

    /// Whether the next entry is one more element.
    fn goes_on(&self, node: &Node, many: Many) -> bool {
        let place = &self.places[node.leaves.start - self.first_leaf];
        !place.is_empty() && self.entries.levels(node.leaves.start, place.start).1 >= many.goes_on
    }

    /// Takes an entry of every leaf, for something that is null or empty, and appends that.
    fn append_none(&mut self, node: &Node, text: &[u8]) -> Result<(), NotJson> {
        node.leaves.clone().try_for_each(|leaf| self.take(leaf).map(drop))?;
        self.out.extend_from_slice(text);
        Ok(())
    }

    /// Appends the next value of a node.
    fn append(&mut self, node: &Node) -> Result<(), NotJson> {
        if self.is_too_long() {
            return Ok(());
        }
        match &node.shape {
            Shape::Leaf => {
                let entry = self.take(node.leaves.start)?;
                self.entries.append_json(node.leaves.start, entry, &mut self.out)
            }
            Shape::Struct { there, .. } if self.definition(node)? < *there => self.append_none(node, b"null"),
            Shape::Struct { members, .. } => {
                for (at, (name, member)) in members.iter().enumerate() {
                    self.out.push(if at == 0 { b'{' } else { b',' });
                    self.out.extend_from_slice(name);
                    self.append(member)?;
                }
                self.out.push(b'}');
                Ok(())
            }
            Shape::Many { many, element } => {
                self.append_many(node, *many, b"[]", |assembly| assembly.append(element))
            }
            Shape::Map { many, key, value } => self.append_many(node, *many, b"{}", |assembly| {
                assembly.append_key(key)?;
                assembly.out.push(b':');
                match value {
                    Some(value) => assembly.append(value),
                    None => {
                        assembly.out.extend_from_slice(b"null");
                        Ok(())
                    }
                }
            }),
        }
    }

    /// Appends a list or a map between `brackets`.
    fn append_many(
        &mut self,
        node: &Node,
        many: Many,
        brackets: &[u8; 2],
        append: impl Fn(&mut Self) -> Result<(), NotJson>,
    ) -> Result<(), NotJson> {
        match self.definition(node)? {
            level if level < many.there => return self.append_none(node, b"null"),
            level if level < many.element => return self.append_none(node, brackets),
            _ => {}
        }
        self.out.push(brackets[0]);
        append(self)?;
        while self.goes_on(node, many) && !self.is_too_long() {
            self.out.push(b',');
            append(self)?;
        }
        self.out.push(brackets[1]);
        Ok(())
    }

    /// Appends the key of a map as a string: that of a leaf in its bytes' form, another one as the text of its JSON.
    fn append_key(&mut self, key: &Node) -> Result<(), NotJson> {
        if key.is_leaf() {
            let entry = self.take(key.leaves.start)?;
            return self.entries.append_name(key.leaves.start, entry, &mut self.out);
        }
        let start = self.out.len();
        self.append(key)?;
        let text = String::from_utf8(self.out.split_off(start)).map_err(|_| NotJson::Utf8)?;
        append_json_string(&text, &mut self.out);
        Ok(())
    }
}
