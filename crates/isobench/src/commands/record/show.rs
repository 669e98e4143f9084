//! What a capture holds, as text.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::BufReader;
use std::path::Path;

use isobench_capture::{Closed, Header, Opened, Reader, Record, Source, Statement};
use isobench_comparison::{Failure, Outcome};
use isobench_sql::normal::Normal;
use isobench_trust::open_to_show;

use crate::output::{print, shown};

/// The widest line of a statement's text.
const WIDEST: usize = 100;

/// The number of texts that are listed.
const LISTED: usize = 50;

/// What a capture holds.
#[derive(Default)]
struct Contents {
    sessions: BTreeMap<u64, Seen>,
    /// Executions of each text, and how many failed.
    texts: HashMap<u32, (u64, u64)>,
    errors: BTreeMap<String, (u64, u64)>,
    levels: BTreeMap<String, u64>,
    unseen: BTreeMap<String, u64>,
    statements: u64,
    last: u64,
    why: Option<String>,
    tags: BTreeMap<String, u64>,
}

/// A session.
#[derive(Default)]
struct Seen {
    opened: Opened,
    closed: Option<Closed>,
    statements: u64,
}

/// Prints what a capture holds.
///
/// # Errors
/// It can't be read, or isn't one.
pub(super) fn show(path: &Path) -> Outcome {
    let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("{}: {error}", shown(path)));
    let file = open_to_show(path).map_err(|error| wrong(&error))?;
    let mut reader = Reader::begin(BufReader::new(file)).map_err(|error| wrong(&error))?;
    let mut contents = Contents::default();
    while let Some(record) = reader.next_record().map_err(|error| wrong(&error))? {
        contents.add(record, |text| level_of(reader.text(text)));
    }
    let text = contents.text(reader.header(), reader.ended(), |number| reader.text(number).to_owned());
    print(&text)
}

impl Contents {
    fn add(&mut self, record: Record, level: impl Fn(u32) -> Option<String>) {
        match record {
            Record::Opened(opened) => {
                self.last = self.last.max(opened.at);
                let session = opened.session;
                self.sessions.entry(session).or_default().opened = opened;
            }
            Record::Closed(closed) => {
                self.last = self.last.max(closed.at);
                let session = closed.session;
                self.sessions.entry(session).or_default().closed = Some(closed);
            }
            Record::Statement(statement) => self.statement(&statement, level(statement.text)),
            Record::Unseen(unseen) => *self.unseen.entry(unseen.what).or_default() += 1,
            Record::Ended(end) => {
                self.last = self.last.max(end.at);
                self.why = end.why;
            }
        }
    }

    fn statement(&mut self, statement: &Statement, level: Option<String>) {
        self.statements += 1;
        self.last = self.last.max(statement.at + statement.took);
        self.sessions.entry(statement.session).or_default().statements += 1;
        let (count, failed) = self.texts.entry(statement.text).or_default();
        *count += u64::from(!statement.continued);
        for answer in &statement.answers {
            if let Some(tag) = &answer.tag
                && let Some(word @ ("BEGIN" | "COMMIT" | "ROLLBACK")) = tag.split(' ').next()
            {
                *self.tags.entry(word.to_owned()).or_default() += 1;
            }
            if let Some(error) = &answer.error {
                *failed += 1;
                let (all, injected) = self.errors.entry(error.code.clone()).or_default();
                *all += 1;
                *injected += u64::from(error.injected);
            }
        }
        if let Some(level) = level {
            *self.levels.entry(level).or_default() += 1;
        }
    }

    fn text(&self, header: &Header, ended: bool, text: impl Fn(u32) -> String) -> String {
        let mut out = String::new();
        self.write(&mut out, header, ended, text).unwrap_or_else(|_| unreachable!("a String takes all"));
        out
    }

    fn write(
        &self,
        out: &mut String,
        header: &Header,
        ended: bool,
        text: impl Fn(u32) -> String,
    ) -> std::fmt::Result {
        let source = match header.source {
            Source::Protocol => "sessions",
            Source::ServerLog => "the server's log, without results",
        };
        let seconds = self.last as f64 / 1e6;
        writeln!(
            out,
            "Recorded from {} on, for {seconds:.1} s, by isobench {}, from {source}",
            header.began, header.isobench
        )?;
        match (ended, &self.why) {
            (false, _) => writeln!(out, "INCOMPLETE: the file breaks off (a crash, or a full disk)")?,
            (true, Some(why)) => writeln!(out, "INCOMPLETE: recording stopped: {why}")?,
            (true, None) => writeln!(out, "It ended in order.")?,
        }
        writeln!(
            out,
            "{}",
            if header.redacted {
                "Redacted: text values and literals are hashes, messages of errors are dropped; numbers, dates, UUIDs, \
                 names and SQLSTATEs are kept."
            } else {
                "Not redacted: it holds the application's data."
            }
        )?;
        self.write_sessions(out)?;
        let tags: Vec<String> = self.tags.iter().map(|(tag, count)| format!("{tag} {count}")).collect();
        writeln!(
            out,
            "\n{} statements{}",
            self.statements,
            if tags.is_empty() { String::new() } else { format!(": {}", tags.join(", ")) }
        )?;
        // Statements that differ by values alone are one line.
        let mut patterns: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (number, (count, failed)) in &self.texts {
            let (all, all_failed) = patterns.entry(Normal::of(&text(*number), &[]).key).or_default();
            *all += count;
            *all_failed += failed;
        }
        let mut texts: Vec<((u64, u64), String)> =
            patterns.into_iter().map(|(text, counts)| (counts, text)).collect();
        texts.sort_by(|((one, _), a), ((other, _), b)| other.cmp(one).then_with(|| a.cmp(b)));
        for ((count, failed), text) in texts.iter().take(LISTED) {
            let failed = if *failed == 0 { String::new() } else { format!(" ({failed} failed)") };
            writeln!(out, "{count:>9}  {}{failed}", cut(text))?;
        }
        if texts.len() > LISTED {
            writeln!(out, "           and {} more texts", texts.len() - LISTED)?;
        }
        if !self.levels.is_empty() {
            writeln!(out, "\nIsolation levels that statements set")?;
        }
        for (level, count) in &self.levels {
            writeln!(out, "{count:>9}  {level}")?;
        }
        if !self.errors.is_empty() {
            writeln!(out, "\nErrors")?;
        }
        for (code, (count, injected)) in &self.errors {
            let injected = if *injected == 0 { String::new() } else { format!(" ({injected} injected)") };
            writeln!(out, "{count:>9}  {code}{injected}")?;
        }
        if !self.unseen.is_empty() {
            writeln!(out, "\nNot recorded")?;
        }
        for (what, count) in &self.unseen {
            writeln!(out, "{count:>9}  {what}")?;
        }
        Ok(())
    }

    fn write_sessions(&self, out: &mut String) -> std::fmt::Result {
        let encrypted = self.sessions.values().filter(|session| session.opened.encrypted).count();
        let versions: BTreeSet<&str> =
            self.sessions.values().filter_map(|session| session.opened.server_version.as_deref()).collect();
        let versions = if versions.is_empty() {
            String::new()
        } else {
            format!(", PostgreSQL {}", versions.into_iter().collect::<Vec<_>>().join(", "))
        };
        writeln!(
            out,
            "\n{} sessions, {encrypted} of them encrypted on the way to the server{versions}",
            self.sessions.len()
        )?;
        let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for session in self.sessions.values() {
            let parameter = |name: &str| session.opened.parameters.get(name).map_or("?", String::as_str);
            let mut kind = format!("{} as {}", parameter("database"), parameter("user"));
            if let Some(name) = session.opened.parameters.get("application_name") {
                let _ = write!(kind, ", {name}");
            }
            if let Some(why) = session.closed.as_ref().and_then(|closed| closed.why.as_ref()) {
                let _ = write!(kind, ": {why}");
            }
            let (sessions, statements) = kinds.entry(kind).or_default();
            *sessions += 1;
            *statements += session.statements;
        }
        for (kind, (sessions, statements)) in kinds {
            writeln!(out, "{sessions:>9}  {kind}; {statements} statements")?;
        }
        Ok(())
    }
}

/// The isolation level that a statement sets, if it does.
fn level_of(sql: &str) -> Option<String> {
    let lower = sql.to_ascii_lowercase();
    let first = lower.split_ascii_whitespace().next()?;
    if !matches!(first, "begin" | "start" | "set" | "begin;" | "select") {
        return None;
    }
    let sets = lower.contains("isolation level")
        || (lower.contains("transaction_isolation") && (first == "set" || lower.contains("set_config")));
    let levels = ["serializable", "repeatable read", "read committed", "read uncommitted"];
    let level = levels.into_iter().find(|level| lower.contains(level)).filter(|_| sets)?;
    let scope =
        if lower.contains("session") || lower.contains("default_transaction") { " (session)" } else { "" };
    Some(format!("{level}{scope}"))
}

/// A text, cut to the widest.
fn cut(text: &str) -> String {
    let cut: String = text.chars().take(WIDEST - 1).collect();
    if cut.len() == text.len() { cut } else { cut + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_found() {
        for (sql, level) in [
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", Some("serializable")),
            ("begin transaction isolation level repeatable read", Some("repeatable read")),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
                Some("read committed (session)"),
            ),
            ("SET default_transaction_isolation = 'serializable'", Some("serializable (session)")),
            ("SELECT 'serializable'", None),
            ("SHOW transaction_isolation", None),
            ("", None),
        ] {
            assert_eq!(level_of(sql).as_deref(), level, "{sql}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("SELECT 1"), "SELECT 1");
        assert_eq!(cut(&"x".repeat(200)).chars().count(), WIDEST);
    }
}
