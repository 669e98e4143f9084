//! The texts and results of the simulated server's replies.

use std::borrow::Cow;

use isobench_pgwire::{SqlState, server};

use crate::simulated::settings::{Answer, SimulationSettings};

/// The object id of the type text.
const TEXT: u32 = 25;

/// Messages by code, as worded by PostgreSQL.
const MESSAGES: [(SqlState, &str); 8] = [
    (SqlState::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update"),
    (SqlState::DEADLOCK_DETECTED, "deadlock detected"),
    (SqlState::STATEMENT_COMPLETION_UNKNOWN, "result is ambiguous"),
    (SqlState::UNDEFINED_TABLE, "relation \"t\" does not exist"),
    (SqlState::SYNTAX_ERROR, "syntax error"),
    (SqlState::QUERY_CANCELED, "canceling statement due to user request"),
    (SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command"),
    (
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    ),
];

pub(super) fn error(out: &mut Vec<u8>, severity: &str, code: SqlState) {
    let message = MESSAGES.iter().find(|row| row.0 == code).map_or("simulated error", |row| row.1);
    let mut fields = vec![(b'S', severity), (b'V', severity), (b'C', code.as_str()), (b'M', message)];
    if code == SqlState::DEADLOCK_DETECTED {
        fields.push((b'W', "while updating tuple (0,1) in relation \"t\""));
    }
    server::error_response(out, &fields);
}

/// A notice that fills a large part of a receive buffer.
pub(super) fn long_notice() -> Vec<u8> {
    let mut out = Vec::new();
    let text = "x".repeat(16_000);
    server::notice_response(&mut out, &[(b'S', "NOTICE"), (b'V', "NOTICE"), (b'C', "00000"), (b'M', &text)]);
    out
}

pub(super) fn notice(out: &mut Vec<u8>) {
    server::notice_response(
        out,
        &[(b'S', "NOTICE"), (b'V', "NOTICE"), (b'C', "00000"), (b'M', "by the way")],
    );
}

/// The result of a SELECT or SHOW.
pub(super) fn answer(settings: &SimulationSettings, sql: &str) -> Answer {
    let known = settings.answers.iter().find(|(part, _)| sql.contains(part));
    known.map_or_else(|| Answer::column("v", &["1"]), |(_, answer)| answer.clone())
}

pub(super) fn columns(out: &mut Vec<u8>, names: &[&str]) {
    let columns: Vec<(&str, u32)> = names.iter().map(|name| (*name, TEXT)).collect();
    server::row_description(out, &columns);
}

/// A result of at most one row.
pub(super) fn row(
    out: &mut Vec<u8>,
    names: &[&str],
    values: Option<&[String]>,
    with_columns: bool,
    tag: &str,
) {
    if with_columns {
        columns(out, names);
    }
    if let Some(values) = values {
        let values: Vec<Option<&[u8]>> = values.iter().map(|value| Some(value.as_bytes())).collect();
        server::data_row(out, &values);
    }
    server::command_complete(out, &format!("{tag} {}", u8::from(values.is_some())));
}

/// Rows, whose values `fill` maps, and tag; the columns only if they couldn't be requested before.
pub(super) fn result(
    out: &mut Vec<u8>,
    answer: &Answer,
    fill: impl Fn(&'static str) -> Cow<'static, str>,
    with_columns: bool,
    tag: &str,
) {
    if with_columns {
        columns(out, &answer.columns);
    }
    for row in &answer.rows {
        let values: Vec<_> = row.iter().map(|value| value.map(&fill)).collect();
        let values: Vec<_> = values.iter().map(|value| value.as_deref().map(str::as_bytes)).collect();
        server::data_row(out, &values);
    }
    server::command_complete(out, &format!("{tag} {}", answer.rows.len()));
}
