//! Decodes the messages of `pgoutput`, protocol version 1, without I/O.
//!
//! Source: PostgreSQL manual, "Logical Replication Message Formats". A message that isn't exactly
//! of that format is an error: this is a source that checks another one, so it mustn't guess. No
//! more memory is used than a small multiple of the message's size, whatever counts it states.
//!
//! The decoder is isobench's own. The nine messages are two hundred lines of reading integers and
//! texts, while the crates that decode them are parts of young asynchronous replication clients.

/// A message, borrowing its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// A transaction's changes follow.
    Begin {
        /// The position of its commit record.
        final_lsn: u64,
        /// The time of its commit, in microseconds since 2000-01-01 UTC.
        commit_time: i64,
        /// Its number.
        xid: u32,
    },
    /// The end of a transaction's changes.
    Commit {
        /// The position of its commit record.
        commit_lsn: u64,
        /// The position after it.
        end_lsn: u64,
        /// The time of the commit, in microseconds since 2000-01-01 UTC.
        commit_time: i64,
    },
    /// The transaction was replicated from another server.
    Origin {
        /// The position of its commit record there.
        commit_lsn: u64,
        /// The other server's name.
        name: &'a str,
    },
    /// A table that the following changes refer to by number.
    Relation(Relation<'a>),
    /// A type that a table's columns refer to by number.
    Type {
        /// The type's number (`pg_type.oid`).
        id: u32,
        /// Its schema; empty for `pg_catalog`.
        schema: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A row was inserted.
    Insert {
        /// The number of the table.
        relation: u32,
        /// The row.
        new: Vec<Field<'a>>,
    },
    /// A row was updated.
    Update {
        /// The number of the table.
        relation: u32,
        /// The old row, if the server sends one.
        old: Option<OldRow<'a>>,
        /// The new row.
        new: Vec<Field<'a>>,
    },
    /// A row was deleted.
    Delete {
        /// The number of the table.
        relation: u32,
        /// The row.
        old: OldRow<'a>,
    },
    /// Tables were truncated.
    Truncate {
        /// Bits of options: 1 is CASCADE, 2 is RESTART IDENTITY.
        options: u8,
        /// The numbers of the tables.
        relations: Vec<u32>,
    },
}

/// A table, as described before changes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relation<'a> {
    /// Its number (`pg_class.oid`).
    pub(crate) id: u32,
    /// Its schema; empty for `pg_catalog`.
    pub(crate) schema: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its replica identity, as in `pg_class.relreplident`.
    pub(crate) identity: u8,
    /// Its columns, except generated ones.
    pub(crate) columns: Vec<Column<'a>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column<'a> {
    /// True if it is part of the replica identity.
    pub(crate) key: bool,
    /// Its name.
    pub(crate) name: &'a str,
    /// The number of its type.
    pub(crate) type_id: u32,
    /// The modifier of its type (`pg_attribute.atttypmod`).
    pub(crate) modifier: i32,
}

/// A row before an update or a delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldRow<'a> {
    /// True if it is the whole row (REPLICA IDENTITY FULL); otherwise columns outside of the key
    /// are NULL.
    pub(crate) whole: bool,
    /// The values.
    pub(crate) fields: Vec<Field<'a>>,
}

/// A value in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// NULL.
    Null,
    /// A value stored outside of the row (TOAST) that an update didn't change; it isn't sent.
    Unchanged,
    /// The value as a text.
    Text(&'a str),
}

/// A message that isn't of the documented format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a message of type {kind:?} is malformed at byte {at}: {problem}")]
pub struct PgoutputError {
    kind: char,
    at: usize,
    problem: &'static str,
}

/// Decodes one message.
///
/// # Errors
/// It isn't exactly a message of the protocol's version 1 in UTF-8.
pub(crate) fn decode(message: &[u8]) -> Result<Message<'_>, PgoutputError> {
    let Some((&kind, rest)) = message.split_first() else {
        return Err(PgoutputError { kind: '\0', at: 0, problem: "it is empty" });
    };
    let mut body = Body { kind, rest, length: message.len() };
    let decoded = match kind {
        b'B' => Message::Begin { final_lsn: body.u64()?, commit_time: body.i64()?, xid: body.u32()? },
        b'C' => {
            // Flags, currently unused.
            body.u8()?;
            Message::Commit { commit_lsn: body.u64()?, end_lsn: body.u64()?, commit_time: body.i64()? }
        }
        b'O' => Message::Origin { commit_lsn: body.u64()?, name: body.c_string()? },
        b'R' => Message::Relation(relation(&mut body)?),
        b'Y' => Message::Type { id: body.u32()?, schema: body.c_string()?, name: body.c_string()? },
        b'I' => Message::Insert { relation: body.u32()?, new: new_row(&mut body)? },
        b'U' => {
            let relation = body.u32()?;
            let old = if body.rest.first() == Some(&b'N') { None } else { Some(old_row(&mut body)?) };
            Message::Update { relation, old, new: new_row(&mut body)? }
        }
        b'D' => Message::Delete { relation: body.u32()?, old: old_row(&mut body)? },
        b'T' => truncate(&mut body)?,
        _ => return Err(body.error("there is no such message in version 1 of the protocol")),
    };
    if body.rest.is_empty() { Ok(decoded) } else { Err(body.error("surplus bytes")) }
}

fn relation<'a>(body: &mut Body<'a>) -> Result<Relation<'a>, PgoutputError> {
    let (id, schema, name) = (body.u32()?, body.c_string()?, body.c_string()?);
    let identity = body.u8()?;
    let count = usize::from(body.u16()?);
    // A column has at least ten bytes.
    let mut columns = Vec::with_capacity(count.min(body.rest.len() / 10));
    for _ in 0..count {
        let key = body.u8()? & 1 == 1;
        columns.push(Column { key, name: body.c_string()?, type_id: body.u32()?, modifier: body.i32()? });
    }
    Ok(Relation { id, schema, name, identity, columns })
}

fn truncate<'a>(body: &mut Body<'a>) -> Result<Message<'a>, PgoutputError> {
    let count = body.u32()?;
    let options = body.u8()?;
    let mut relations = Vec::new();
    // Each of them has four bytes, so a count that is too large soon meets the end.
    for _ in 0..count {
        relations.push(body.u32()?);
    }
    Ok(Message::Truncate { options, relations })
}

fn new_row<'a>(body: &mut Body<'a>) -> Result<Vec<Field<'a>>, PgoutputError> {
    match body.u8()? {
        b'N' => fields(body),
        _ => Err(body.error("the new row is missing")),
    }
}

fn old_row<'a>(body: &mut Body<'a>) -> Result<OldRow<'a>, PgoutputError> {
    let whole = match body.u8()? {
        b'K' => false,
        b'O' => true,
        _ => return Err(body.error("the old row is missing")),
    };
    Ok(OldRow { whole, fields: fields(body)? })
}

fn fields<'a>(body: &mut Body<'a>) -> Result<Vec<Field<'a>>, PgoutputError> {
    let count = usize::from(body.u16()?);
    let mut fields = Vec::with_capacity(count.min(body.rest.len()));
    for _ in 0..count {
        fields.push(match body.u8()? {
            b'n' => Field::Null,
            b'u' => Field::Unchanged,
            b't' => {
                let length = usize::try_from(body.u32()?).unwrap_or(usize::MAX);
                let text = body.take(length)?;
                Field::Text(body.text(text)?)
            }
            b'b' => return Err(body.error("a binary value, which wasn't asked for")),
            _ => return Err(body.error("an unknown form of value")),
        });
    }
    Ok(fields)
}

/// The rest of a message.
struct Body<'a> {
    kind: u8,
    rest: &'a [u8],
    /// The length of the whole message.
    length: usize,
}

impl<'a> Body<'a> {
    #[cold]
    fn error(&self, problem: &'static str) -> PgoutputError {
        PgoutputError { kind: char::from(self.kind), at: self.length - self.rest.len(), problem }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], PgoutputError> {
        match self.rest.split_at_checked(length) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.error("it is cut off")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PgoutputError> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(self.error("it is cut off")),
        }
    }

    fn u8(&mut self) -> Result<u8, PgoutputError> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, PgoutputError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, PgoutputError> {
        self.array().map(u32::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, PgoutputError> {
        self.array().map(i32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, PgoutputError> {
        self.array().map(u64::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, PgoutputError> {
        self.array().map(i64::from_be_bytes)
    }

    /// A text that a zero byte ends.
    fn c_string(&mut self) -> Result<&'a str, PgoutputError> {
        let Some(length) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(self.error("a name has no end"));
        };
        let text = self.take(length)?;
        self.take(1)?;
        self.text(text)
    }

    fn text(&self, bytes: &'a [u8]) -> Result<&'a str, PgoutputError> {
        std::str::from_utf8(bytes).map_err(|_| self.error("a text isn't UTF-8"))
    }
}

#[cfg(test)]
mod tests;
