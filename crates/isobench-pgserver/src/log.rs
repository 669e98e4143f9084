//! Extracts the relevant parts of the server's log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The size of the examined end of the log, in bytes.
const TAIL_BYTES: u64 = 4096;

/// Reads the last complete lines of a log, at most 4 KiB; empty if it can't be read.
pub(crate) fn tail(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(length > TAIL_BYTES)
    });
    let text = String::from_utf8_lossy(&bytes);
    if matches!(read, Ok(true)) { whole_lines(&text) } else { text.trim_end().to_owned() }
}

/// The last complete lines of a text, at most 4 KiB.
pub(crate) fn last_lines(text: &str) -> String {
    let most = usize::try_from(TAIL_BYTES).unwrap_or(usize::MAX);
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    if start == 0 { text.trim().to_owned() } else { whole_lines(&text[start..]) }
}

/// A text without its first line, which may be incomplete.
fn whole_lines(text: &str) -> String {
    text.split_once('\n').map_or(text, |(_cut, rest)| rest).trim_end().to_owned()
}

/// Finds the reason for the server's end: the first FATAL or PANIC line with the following DETAIL
/// and HINT lines, without the time and process id at the start of the line.
pub(crate) fn reason(log: &str) -> Option<String> {
    let mut lines = log.lines().skip_while(|line| message(line, &["FATAL", "PANIC"]).is_none());
    let first = message(lines.next()?, &["FATAL", "PANIC"])?;
    let more = lines.map_while(|line| message(line, &["DETAIL", "HINT"]));
    Some(std::iter::once(first).chain(more).collect::<Vec<_>>().join("; "))
}

/// The part of a line from one of the labels on, if it has one.
fn message(line: &str, labels: &[&str]) -> Option<String> {
    labels.iter().find_map(|label| {
        let (start, rest) = line.split_once(&format!("{label}:  "))?;
        // The label follows the prefix "time [pid] ", and isn't part of a message.
        let is_label = start.is_empty() || start.ends_with("] ") || start.ends_with(": ");
        is_label.then(|| format!("{label}: {}", rest.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_with_its_hints() {
        let log = "2026-01-02 03:04:05.678 GMT [42] LOG:  starting PostgreSQL\n\
                   2026-01-02 03:04:05.678 GMT [42] FATAL:  could not map anonymous shared memory: \
                   Cannot allocate memory\n\
                   2026-01-02 03:04:05.678 GMT [42] HINT:  This error usually means too little memory.\n\
                   2026-01-02 03:04:05.678 GMT [42] LOG:  database system is shut down\n";
        assert_eq!(
            reason(log).as_deref(),
            Some(
                "FATAL: could not map anonymous shared memory: Cannot allocate memory; HINT: This \
                 error usually means too little memory."
            )
        );
    }

    #[test]
    fn a_log_without_a_fatal_line_has_no_reason() {
        assert_eq!(reason(""), None);
        assert_eq!(reason("2026 [1] LOG:  statement: select 'FATAL:  no'\n"), None);
    }

    #[test]
    fn the_tail_is_short_and_starts_with_a_whole_line() {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), "one\ntwo\n").expect("write");
        assert_eq!(tail(file.path()), "one\ntwo");
        let long = "some line\n".repeat(1000) + "the last line\n";
        std::fs::write(file.path(), long).expect("write");
        let text = tail(file.path());
        assert!(
            text.len() <= 4096 && text.starts_with("some line\n") && text.ends_with("the last line"),
            "{text}"
        );
        assert_eq!(tail(Path::new("/nonexistent")), "");

        assert_eq!(last_lines("one\ntwo\n"), "one\ntwo");
        let text = last_lines(&("some ünicode\n".repeat(1000) + "the last line\n"));
        assert!(text.len() <= 4096 && text.starts_with("some ünicode\n") && text.ends_with("the last line"));
    }
}
