//! Collects the server's reply to a simple query, or to messages of the extended protocol.

use crate::backend::{Message, rows_of_tag};
use crate::{Error, Frame, ProtocolError, ServerError};

/// A statement that has ended successfully.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Completed {
    /// The command tag, such as `UPDATE 3`; empty for an empty statement.
    pub tag: String,
}

impl Completed {
    /// The number of rows in the tag, if it has one.
    pub fn rows(&self) -> Option<u64> {
        rows_of_tag(&self.tag)
    }
}

/// The rows of a result, as text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; `None` is NULL. Bytes that aren't UTF-8 are replaced by U+FFFD.
    pub rows: Vec<Vec<Option<String>>>,
}

/// The reason that reading stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// The server is ready for the next query.
    Ready,
    /// The server waits for COPY data.
    CopyIn,
}

/// The reply so far.
#[derive(Debug)]
pub(super) struct Answer {
    keep_rows: bool,
    /// It is the reply to Parse, Describe, Bind or Execute.
    extended: bool,
    /// The types of the parameters of what was described.
    pub(super) types: Vec<u32>,
    pub(super) completed: Vec<Completed>,
    pub(super) rows: Rows,
    pub(super) error: Option<ServerError>,
    /// The approximate memory used, in bytes.
    pub(super) kept: usize,
}

/// The approximate memory used for a value in addition to its bytes.
const OVERHEAD: usize = 32;

impl Answer {
    pub(super) fn new(keep_rows: bool) -> Self {
        let (completed, rows) = (Vec::new(), Rows::default());
        Self { keep_rows, extended: false, types: Vec::new(), completed, rows, error: None, kept: 0 }
    }

    /// The reply to messages of the extended protocol, up to Sync.
    pub(super) fn of_extended() -> Self {
        Self { extended: true, ..Self::new(true) }
    }

    /// Processes a message.
    pub(super) fn take(
        &mut self,
        frame: Frame<'_>,
        message: &Message<'_>,
    ) -> Result<Option<Next>, ProtocolError> {
        match message {
            Message::RowDescription(description) if self.keep_rows => {
                let columns = description.names().map(std::borrow::Cow::into_owned).collect();
                self.rows = Rows { columns, rows: Vec::new() };
            }
            Message::DataRow(row) if self.keep_rows => {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                let row: Vec<_> = row.columns().map(|value| value.map(text)).collect();
                self.kept += OVERHEAD * (1 + row.len()) + frame.body.len();
                self.rows.rows.push(row);
            }
            Message::CommandComplete { tag } => self.complete(tag),
            Message::EmptyQueryResponse => self.complete(""),
            Message::ErrorResponse(error) => {
                self.error.get_or_insert_with(|| error.to_error());
            }
            Message::ParameterDescription(description) if self.extended => {
                self.types = description.types().collect();
            }
            Message::ParseComplete | Message::BindComplete | Message::NoData if self.extended => {}
            Message::CopyInResponse(_) => return Ok(Some(Next::CopyIn)),
            Message::RowDescription(_)
            | Message::DataRow(_)
            | Message::CopyOutResponse(_)
            | Message::CopyData(_)
            | Message::CopyDone
            | Message::NotificationResponse { .. } => {}
            _ => {
                return Err(ProtocolError::Unexpected { tag: frame.tag, during: "in the answer to a query" });
            }
        }
        Ok(None)
    }

    fn complete(&mut self, tag: &str) {
        self.kept += OVERHEAD + tag.len();
        self.completed.push(Completed { tag: tag.to_owned() });
    }

    /// The reply, or its error.
    pub(super) fn finish(self) -> Result<Self, Error> {
        match self.error {
            Some(error) => Err(error.into()),
            None => Ok(self),
        }
    }
}
