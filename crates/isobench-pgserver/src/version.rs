//! Parses the version that a PostgreSQL program reports.

use std::cmp::Ordering;

/// A server's version, compared numerically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The major version, such as 15.
    pub(crate) major: u32,
    /// The minor version; 0 for betas and development versions.
    pub(crate) minor: u32,
    /// The version as reported, such as "15.18" or "19beta1".
    pub(crate) text: String,
}

impl Version {
    /// Parses the line printed by `postgres --version`, such as `postgres (PostgreSQL) 15.18
    /// (Debian …)`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let text = line.split_once("(PostgreSQL)")?.1.split_whitespace().next()?;
        let (major, rest) = leading_number(text)?;
        let minor = rest.strip_prefix('.').and_then(leading_number).map_or(0, |(minor, _)| minor);
        Some(Self { major, minor, text: text.to_owned() })
    }

    /// Compares major, then minor versions.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor).cmp(&(other.major, other.minor))
    }
}

fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_real_servers_are_read() {
        for (line, major, minor, text) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", 15, 18, "15.18"),
            ("postgres (PostgreSQL) 18.3", 18, 3, "18.3"),
            ("postgres (PostgreSQL) 19beta1", 19, 0, "19beta1"),
            ("postgres (PostgreSQL) 20devel", 20, 0, "20devel"),
            ("postgres (PostgreSQL) 9.6.24", 9, 6, "9.6.24"),
        ] {
            let version = Version::parse(line).expect(line);
            assert_eq!((version.major, version.minor, version.text.as_str()), (major, minor, text));
        }
    }

    #[test]
    fn other_lines_are_no_version() {
        for line in ["", "mysqld Ver 8", "postgres (PostgreSQL)", "postgres (PostgreSQL) devel"] {
            assert_eq!(Version::parse(line), None, "{line}");
        }
    }

    #[test]
    fn versions_compare_by_number() {
        let version =
            |text: &str| Version::parse(&format!("postgres (PostgreSQL) {text}")).expect("a version");
        assert_eq!(version("9.6").compare(&version("15.2")), Ordering::Less);
        assert_eq!(version("15.10").compare(&version("15.9")), Ordering::Greater);
    }
}
