//! Password files: `host:port:database:user:password`, one entry per line.
//!
//! Source: PostgreSQL: libpq, The Password File.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Address, Host, Secret};

/// The passwords in a file.
#[derive(Debug, Default)]
pub(super) struct PasswordFile {
    text: String,
}

impl PasswordFile {
    /// Reads a file. A missing file is equivalent to an empty one; a file that others can read is
    /// ignored with a warning.
    pub(super) fn read(path: &Path, warnings: &mut Vec<String>) -> Self {
        let Ok(metadata) = std::fs::metadata(path) else {
            return Self::default();
        };
        let shown = path.display();
        if !metadata.is_file() {
            warnings.push(format!("WARNING: password file \"{shown}\" is not a plain file"));
            return Self::default();
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            warnings.push(format!(
                "WARNING: password file \"{shown}\" has group or world access; permissions should \
                 be u=rw (0600) or less"
            ));
            return Self::default();
        }
        let bytes = std::fs::read(path).unwrap_or_default();
        Self { text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// The password in the first matching line; `None` if that line has no password.
    pub(super) fn find(
        &self,
        host: &Host,
        default_folders: &[&str],
        dbname: &str,
        user: &str,
    ) -> Option<Secret> {
        let name = match &host.address {
            // The file uses this name for the default socket folder.
            Address::Unix(folder)
                if host.hostaddr.is_none()
                    && default_folders.iter().any(|known| folder == Path::new(known)) =>
            {
                "localhost".to_owned()
            }
            _ => host.name(),
        };
        let port = host.port.to_string();
        let wanted = [name.as_str(), &port, dbname, user];
        // As in libpq, which removes all line feeds and carriage returns at the end, but ends a
        // line only at a line feed.
        let lines = self.text.split('\n').map(|line| line.trim_end_matches('\r'));
        let lines = lines.filter(|line| !line.starts_with('#'));
        let password = lines.into_iter().find_map(|line| password(line, wanted))?;
        (!password.is_empty()).then(|| Secret::new(password))
    }
}

/// The password in a line, if the line matches.
fn password(line: &str, wanted: [&str; 4]) -> Option<String> {
    let mut rest = line;
    for wanted in wanted {
        let (field, after) = split(rest)?;
        if field != "*" && unescape(field) != wanted {
            return None;
        }
        rest = after;
    }
    // Text after a further colon isn't part of any field.
    Some(unescape(split(rest).map_or(rest, |(password, _)| password)))
}

/// The field before the next colon, with its escapes, and the text after the colon.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == ':' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some((&text[..end], &text[end + 1..]))
}

/// Resolves `\:` and `\\`. A backslash escapes any character; at the end it represents itself.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next().unwrap_or('\\')),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The passwords that libpq 15 sent to a server, for different contents of the file.
    const FILES: &[(&str, Option<&str>)] = &[
        ("127.0.0.1:5432:db:me:secret\n", Some("secret")),
        ("*:*:*:*:s\n", Some("s")),
        ("*:*:*:me:a\\:b\\\\c\n", Some("a:b\\c")),
        ("*:*:*:me:a:b\n", Some("a")),
        ("#*:*:*:*:s\n*:*:*:*:t", Some("t")),
        ("*:1:*:*:s\n*:*:db:me:t\n", Some("t")),
        ("*:*:*:me:\n*:*:*:*:z\n", None),
        ("*:*:*:me\n", None),
        ("*:*:d\\b:me:x", Some("x")),
        ("\\*:*:db:me:x", None),
        ("**:*:db:me:x", None),
        ("*:*:db:me:x\r\n", Some("x")),
        ("*:*:db:me:x\r", Some("x")),
        ("*:*:db:me:x\r\r\n", Some("x")),
        ("*:*:db:me:x\ry", Some("x\ry")),
        ("*:*:db:you:x\r*:*:db:me:y\r", None),
        (" *:*:db:me:x", None),
        (" #\n*:*:*:*: x ", Some(" x ")),
        ("*:*:db:me:a\\", Some("a\\")),
        ("*:*:*x:me:y\n*:*:db:me:z", Some("z")),
        ("*:*:*:*:a:", Some("a")),
        ("*:*:*:*::b", None),
        ("", None),
    ];

    #[test]
    fn the_first_line_that_fits_counts() {
        for (text, expected) in FILES {
            let file = PasswordFile { text: (*text).to_owned() };
            let found = file.find(&Host::tcp("127.0.0.1", 5432), &[], "db", "me");
            assert_eq!(found, expected.map(Secret::new), "{text:?}");
        }
    }

    #[test]
    fn names_are_matched_without_their_escapes() {
        let find = |text: &str, host: &Host, dbname: &str| {
            let file = PasswordFile { text: text.to_owned() };
            file.find(host, &["/var/run/postgresql"], dbname, "me").is_some()
        };
        let mut host = Host::tcp("a.b", 1);
        assert!(find("*:*:a\\:b:me:x", &host, "a:b"));
        assert!(find("*:*:a\\\\b:me:x", &host, "a\\b"));
        assert!(find("*:*:\\*:me:x", &host, "*"));
        assert!(!find("*:*:d\\b:me:x", &host, "d\\b"));
        host.hostaddr = Some("127.0.0.1".to_owned());
        assert!(find("a.b:*:*:*:x", &host, "db"));
        assert!(!find("127.0.0.1:*:*:*:x", &host, "db"));
        assert!(find("localhost:*:*:*:x", &Host::unix("/var/run/postgresql", 1), "db"));
        assert!(!find("localhost:*:*:*:x", &Host::unix("/tmp/other", 1), "db"));
        assert!(find("/tmp/other:*:*:*:x", &Host::unix("/tmp/other", 1), "db"));
    }

    #[test]
    fn a_file_that_others_may_read_is_ignored() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("pass");
        std::fs::write(&path, "*:*:*:*:s")?;
        let mut warnings = Vec::new();
        for (mode, length, warned) in [(0o600, 9, 0), (0o640, 0, 1), (0o604, 0, 2), (0o400, 9, 2)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
            assert_eq!(PasswordFile::read(&path, &mut warnings).text.len(), length, "{mode:o}");
            assert_eq!(warnings.len(), warned, "{warnings:?}");
        }
        PasswordFile::read(folder.path(), &mut warnings);
        assert!(warnings[2].ends_with("is not a plain file"), "{warnings:?}");
        PasswordFile::read(&folder.path().join("missing"), &mut warnings);
        assert_eq!(warnings.len(), 3);
        Ok(())
    }
}
