//! Rows and their descriptions: RowDescription, DataRow, ParameterDescription.
//!
//! Each body is checked completely when it is parsed, so that iterating over it can't fail.

use std::borrow::Cow;

use super::body::Body;
use crate::{Frame, ProtocolError};

/// Reads a body that has already been checked.
fn checked(body: &[u8]) -> Body<'_> {
    Body::new(Frame { tag: 0, body })
}

/// The columns of a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RowDescription<'a> {
    count: u16,
    body: &'a [u8],
}

/// One column of a result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Field<'a> {
    /// Name; bytes that aren't UTF-8 are replaced by U+FFFD.
    pub name: Cow<'a, str>,
    /// Object id of the table it comes from, or 0.
    pub table: u32,
    /// Number of the column in that table, or 0.
    pub column: i16,
    /// Object id of its data type.
    pub data_type: u32,
    /// Size of the data type in bytes, negative if it varies.
    pub type_size: i16,
    /// Modifier of the data type, such as the precision; -1 if none.
    pub type_modifier: i32,
    /// 0 for text, 1 for binary.
    pub format: i16,
}

impl<'a> RowDescription<'a> {
    pub(super) fn parse(body: &mut Body<'a>) -> Result<Self, ProtocolError> {
        let count = body.u16()?;
        let fields = body.peek();
        for _ in 0..count {
            body.c_string()?;
            body.array::<18>()?;
        }
        Ok(Self { count, body: fields })
    }

    /// Number of columns.
    pub fn len(self) -> usize {
        usize::from(self.count)
    }

    /// True if the result has no columns (it may still have rows).
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The columns, in order.
    pub fn fields(self) -> Fields<'a> {
        Fields { left: self.count, body: checked(self.body) }
    }

    /// The names of the columns, in order.
    pub fn names(self) -> impl Iterator<Item = Cow<'a, str>> {
        self.fields().map(|field| field.name)
    }
}

/// Iterator over the columns of a [`RowDescription`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    left: u16,
    body: Body<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        self.left = self.left.checked_sub(1)?;
        let body = &mut self.body;
        Some(Field {
            name: body.lossy().ok()?,
            table: body.u32().ok()?,
            column: body.i16().ok()?,
            data_type: body.u32().ok()?,
            type_size: body.i16().ok()?,
            type_modifier: body.i32().ok()?,
            format: body.i16().ok()?,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// One row of a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataRow<'a> {
    count: u16,
    body: &'a [u8],
}

impl<'a> DataRow<'a> {
    pub(super) fn parse(body: &mut Body<'a>) -> Result<Self, ProtocolError> {
        let count = body.u16()?;
        let values = body.peek();
        for _ in 0..count {
            body.value()?;
        }
        Ok(Self { count, body: values })
    }

    /// Number of columns.
    pub fn len(self) -> usize {
        usize::from(self.count)
    }

    /// True if the row has no columns.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The values, in the order of the columns; `None` for NULL.
    pub fn columns(self) -> Columns<'a> {
        Columns { left: self.count, body: checked(self.body) }
    }
}

/// Iterator over the values of a [`DataRow`].
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    left: u16,
    body: Body<'a>,
}

impl<'a> Iterator for Columns<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        self.left = self.left.checked_sub(1)?;
        self.body.value().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Columns<'_> {}

/// The parameters of a prepared statement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ParameterDescription<'a> {
    body: &'a [u8],
}

impl<'a> ParameterDescription<'a> {
    pub(super) fn parse(body: &mut Body<'a>) -> Result<Self, ProtocolError> {
        let count = body.u16()?;
        Ok(Self { body: body.bytes(usize::from(count) * 4)? })
    }

    /// Number of parameters.
    pub fn len(self) -> usize {
        self.body.len() / 4
    }

    /// True if the statement has no parameters.
    pub fn is_empty(self) -> bool {
        self.body.is_empty()
    }

    /// Object ids of the parameters' data types, in order.
    pub fn types(self) -> impl Iterator<Item = u32> + use<'a> {
        self.body.as_chunks::<4>().0.iter().map(|&oid| u32::from_be_bytes(oid))
    }
}
