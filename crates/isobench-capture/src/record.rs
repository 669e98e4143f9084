//! What the lines of a capture hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of the format. Readers refuse others.
pub const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub isobench_capture: u32,
    /// The version of isobench that wrote the file.
    pub isobench: String,
    /// When recording began, as RFC 3339 has it, in UTC. All other times count from here.
    pub began: String,
    /// Where the records come from.
    pub source: Source,
    /// True if text values are hashes (`--redact`).
    #[serde(default)]
    pub redacted: bool,
}

/// Where the records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Sessions that went through `isobench record`.
    Protocol,
    /// The server's log, without results.
    ServerLog,
}

/// A line after the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A session began.
    Opened(Opened),
    /// A session ended.
    Closed(Closed),
    /// A statement was sent and answered.
    Statement(Statement),
    /// Something passed that isn't recorded.
    Unseen(Unseen),
    /// Recording ended in order; the last line.
    Ended(End),
}

/// A session began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The session's number, from 1.
    pub session: u64,
    /// Microseconds since recording began.
    pub at: u64,
    /// The start-up parameters: `user`, `database`, `application_name`, `options` and others.
    pub parameters: BTreeMap<String, String>,
    /// The server's version (`server_version`), if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// True if the way to the server was encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
}

/// A session ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// The session's number.
    pub session: u64,
    /// Microseconds since recording began.
    pub at: u64,
    /// Why it ended, unless the client said goodbye.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A statement of the extended protocol, or a simple query of one or more statements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The session's number.
    pub session: u64,
    /// When it was sent: microseconds since recording began.
    pub at: u64,
    /// From then to the end of its answer, in microseconds.
    pub took: u64,
    /// The number of its text.
    pub text: u32,
    /// The comment at its beginning or end, which isn't part of the text: it is another one for each
    /// request (`traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The values of its parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Option<Datum>>,
    /// The types of its parameters, as numbers of `pg_type`, as far as client or server said them (0:
    /// not said).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<u32>,
    /// The answers: one in the extended protocol, one per statement of a simple query. Statements after
    /// one that failed have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// True if it takes further rows of a portal from which an earlier one has taken some: it is no new
    /// execution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
    /// The transaction status that the server reported after it: `I`, `T` or `E`. In a pipeline only the
    /// last statement before a Sync has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<char>,
}

/// The answer to a statement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the description of its columns, if it returned rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u32>,
    /// The number of rows returned.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows: u64,
    /// The first rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Vec<Option<Datum>>>,
    /// The command tag; none if it failed, or returned only a part of its rows (the portal was
    /// suspended).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorAnswer>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// The SQLSTATE.
    pub code: String,
    /// The message; empty in a redacted capture.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// True if `isobench record --inject` made it, not the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub injected: bool,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Datum {
    /// As text. Binary values of the usual types are written as the server would write them.
    Text(String),
    /// The bytes of a binary value of another type.
    Hex {
        /// In hexadecimal.
        hex: String,
    },
    /// Something that stands for a value: equal values have equal hashes in a capture.
    Hash {
        /// In hexadecimal.
        hash: String,
        /// The length of the value, in bytes.
        bytes: u64,
    },
}

/// A column of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The number of its table (`pg_class.oid`); 0 if it is an expression.
    pub table: u32,
    /// Its number in the table (`pg_attribute.attnum`), or 0.
    pub number: i16,
    /// The number of its type (`pg_type.oid`).
    #[serde(rename = "type")]
    pub type_oid: u32,
}

/// Something passed that isn't recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// The session's number.
    pub session: u64,
    /// Microseconds since recording began.
    pub at: u64,
    /// What, and why.
    pub what: String,
}

/// Recording ended in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Microseconds since recording began.
    pub at: u64,
    /// Why it ended before the application did, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
