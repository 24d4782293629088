//! The messages of logical replication (PostgreSQL 17, 55.9 "Logical Replication Message Formats"), protocol version 1.

/// A message.
#[derive(Debug, PartialEq)]
pub(super) enum Message<'a> {
    /// The end of a transaction, and the position behind it.
    Commit {
        end: u64,
    },
    /// The columns of a relation, before its first row and after every change of them.
    Relation(Relation),
    Insert {
        relation: u32,
        new: RowFields<'a>,
    },
    /// The old row has the fields of the replica identity, if they changed or are all fields.
    Update {
        relation: u32,
        old: Option<RowFields<'a>>,
        new: RowFields<'a>,
    },
    Delete {
        relation: u32,
        old: RowFields<'a>,
    },
    Truncate {
        relations: Vec<u32>,
    },
    /// A message that changes no row.
    Other,
}

/// A relation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Relation {
    pub(super) id: u32,
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) columns: Vec<RelationColumn>,
}

/// A column of a relation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RelationColumn {
    /// Whether the column is in the replica identity.
    pub(super) is_identity: bool,
    pub(super) name: String,
    pub(super) type_id: u32,
    pub(super) modifier: i32,
}

/// The fields of a row.
pub(super) type RowFields<'a> = Vec<RowField<'a>>;

/// A field of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowField<'a> {
    Null,
    /// A long value that did not change and is not sent.
    Unchanged,
    Text(&'a [u8]),
}

/// The bytes of a message that are not read yet.
struct MessageBytes<'a>(&'a [u8]);

impl<'a> MessageBytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn int16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn int32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn int64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.byte()?;
        Some(text)
    }

    fn fields(&mut self) -> Option<RowFields<'a>> {
        let count = self.int16()?;
        (0..count)
            .map(|_| match self.byte()? {
                b'n' => Some(RowField::Null),
                b'u' => Some(RowField::Unchanged),
                b't' => {
                    let length = self.int32()?;
                    self.take(length as usize).map(RowField::Text)
                }
                _ => None,
            })
            .collect()
    }

    fn relation(&mut self) -> Option<Relation> {
        let id = self.int32()?;
        let (schema, name) = (self.text()?, self.text()?);
        self.byte()?;
        let count = self.int16()?;
        let columns = (0..count).map(|_| {
            Some(RelationColumn {
                is_identity: self.byte()? & 1 == 1,
                name: self.text()?,
                type_id: self.int32()?,
                modifier: self.int32()? as i32,
            })
        });
        Some(Relation { id, schema, name, columns: columns.collect::<Option<_>>()? })
    }

    fn message(&mut self) -> Option<Message<'a>> {
        Some(match self.byte()? {
            b'C' => {
                let (_flags, _commit) = (self.byte()?, self.int64()?);
                Message::Commit { end: self.int64()? }
            }
            b'R' => Message::Relation(self.relation()?),
            b'I' => {
                let relation = self.int32()?;
                (self.byte()? == b'N').then_some(())?;
                Message::Insert { relation, new: self.fields()? }
            }
            b'U' => {
                let relation = self.int32()?;
                let mut kind = self.byte()?;
                let mut old = None;
                if kind != b'N' {
                    old = Some(self.fields()?);
                    kind = self.byte()?;
                }
                (kind == b'N').then_some(())?;
                Message::Update { relation, old, new: self.fields()? }
            }
            b'D' => {
                let relation = self.int32()?;
                self.byte()?;
                Message::Delete { relation, old: self.fields()? }
            }
            b'T' => {
                let count = self.int32()?;
                self.byte()?;
                Message::Truncate { relations: (0..count).map(|_| self.int32()).collect::<Option<_>>()? }
            }
            _ => Message::Other,
        })
    }
}

/// Reads a message. Returns `None` if it is malformed.
pub(super) fn read(bytes: &[u8]) -> Option<Message<'_>> {
    MessageBytes(bytes).message()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(texts: &[Option<&str>]) -> Vec<u8> {
        let mut out = (texts.len() as u16).to_be_bytes().to_vec();
        for text in texts {
            match text {
                None => out.push(b'n'),
                Some(text) => {
                    out.push(b't');
                    out.extend((text.len() as u32).to_be_bytes());
                    out.extend(text.as_bytes());
                }
            }
        }
        out
    }

    #[test]
    fn messages_are_read() {
        let relation = [
            &b"R"[..],
            &7u32.to_be_bytes(),
            b"public\0people\0d",
            &2u16.to_be_bytes(),
            b"\x01id\0",
            &23u32.to_be_bytes(),
            &(-1i32).to_be_bytes(),
            b"\x00name\0",
            &25u32.to_be_bytes(),
            &(-1i32).to_be_bytes(),
        ]
        .concat();
        let Some(Message::Relation(read_relation)) = read(&relation) else { panic!("a relation") };
        assert_eq!((read_relation.id, &read_relation.name[..]), (7, "people"));
        assert_eq!(read_relation.columns[1].type_id, 25);
        let insert = [&b"I"[..], &7u32.to_be_bytes(), b"N", &fields(&[Some("1"), None])].concat();
        let new = vec![RowField::Text(b"1"), RowField::Null];
        assert_eq!(read(&insert), Some(Message::Insert { relation: 7, new: new.clone() }));
        let old = fields(&[Some("0"), None]);
        let update = [&b"U"[..], &7u32.to_be_bytes(), b"K", &old, b"N", &fields(&[Some("1"), None])].concat();
        let old = Some(vec![RowField::Text(b"0"), RowField::Null]);
        assert_eq!(read(&update), Some(Message::Update { relation: 7, old, new }));
        let commit = [&b"C\0"[..], &1u64.to_be_bytes(), &9u64.to_be_bytes(), &[0; 8]].concat();
        assert_eq!(read(&commit), Some(Message::Commit { end: 9 }));
        assert_eq!(read(b"B"), Some(Message::Other));
        for whole in [&relation, &insert, &update, &commit[..18].to_vec()] {
            for end in 0..whole.len() {
                assert!(read(&whole[..end]).is_none(), "cut at {end}");
            }
        }
    }
}
