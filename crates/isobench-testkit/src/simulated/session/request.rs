//! A client's message, as stored by the session until it is processed.

use isobench_pgwire::Frame;
use isobench_pgwire::server::{self, Describable, FrontendMessage};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Query(String),
    Parse {
        name: String,
        sql: String,
    },
    Bind {
        name: String,
        values: Vec<Option<String>>,
    },
    DescribePortal,
    Execute,
    Close(String),
    Sync,
    Flush,
    Terminate,
    CopyData,
    CopyDone,
    CopyFail,
    /// Malformed, or not valid here.
    Nonsense,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Request {
    pub(super) fn of(frame: Frame<'_>) -> Request {
        match server::parse(frame) {
            Ok(FrontendMessage::Query(sql)) => Request::Query(text(sql)),
            Ok(FrontendMessage::Parse { statement, sql, .. }) => {
                Request::Parse { name: text(statement), sql: text(sql) }
            }
            Ok(FrontendMessage::Bind { statement, parameters, .. }) => Request::Bind {
                name: text(statement),
                values: parameters.into_iter().map(|value| value.map(text)).collect(),
            },
            Ok(FrontendMessage::Describe(Describable::Portal(_))) => Request::DescribePortal,
            Ok(FrontendMessage::Execute { .. }) => Request::Execute,
            Ok(FrontendMessage::Close(Describable::Statement(name))) => Request::Close(text(name)),
            Ok(FrontendMessage::Sync) => Request::Sync,
            Ok(FrontendMessage::Flush) => Request::Flush,
            Ok(FrontendMessage::Terminate) => Request::Terminate,
            Ok(FrontendMessage::CopyData(_)) => Request::CopyData,
            Ok(FrontendMessage::CopyDone) => Request::CopyDone,
            Ok(FrontendMessage::CopyFail(_)) => Request::CopyFail,
            _ => Request::Nonsense,
        }
    }
}
