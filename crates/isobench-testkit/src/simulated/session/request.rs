//! A client's message, as stored by the session until it is processed.

use isobench_pgwire::server::{Describable, FrontendMessage};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
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
    DescribeStatement(String),
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
    pub(crate) fn of(message: FrontendMessage<'_>) -> Request {
        match message {
            FrontendMessage::Query(sql) => Request::Query(text(sql)),
            FrontendMessage::Parse { statement, sql, .. } => {
                Request::Parse { name: text(statement), sql: text(sql) }
            }
            FrontendMessage::Bind { statement, parameters, .. } => Request::Bind {
                name: text(statement),
                values: parameters.into_iter().map(|value| value.map(text)).collect(),
            },
            FrontendMessage::Describe(Describable::Portal(_)) => Request::DescribePortal,
            FrontendMessage::Describe(Describable::Statement(name)) => Request::DescribeStatement(text(name)),
            FrontendMessage::Execute { .. } => Request::Execute,
            FrontendMessage::Close(Describable::Statement(name)) => Request::Close(text(name)),
            FrontendMessage::Sync => Request::Sync,
            FrontendMessage::Flush => Request::Flush,
            FrontendMessage::Terminate => Request::Terminate,
            FrontendMessage::CopyData(_) => Request::CopyData,
            FrontendMessage::CopyDone => Request::CopyDone,
            FrontendMessage::CopyFail(_) => Request::CopyFail,
            _ => Request::Nonsense,
        }
    }
}
