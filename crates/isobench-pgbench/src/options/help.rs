//! The text of `--help`: `help.txt`, where a line may start with the versions that have it
//! (`{17-}`, `{-16}`).

use crate::version::Version;

const TEXT: &str = include_str!("help.txt");

/// The help of a version.
pub(super) fn help(version: Version) -> String {
    let mut out = String::with_capacity(TEXT.len());
    for line in TEXT.lines() {
        let (versions, text) = match line.strip_prefix('{').and_then(|line| line.split_once('}')) {
            Some((versions, text)) => (versions, text),
            None => ("", line),
        };
        if has(versions, version.number()) {
            out += text;
            out.push('\n');
        }
    }
    out
}

/// True if a version is in a range such as `17-` or `-16`, or if there is none.
fn has(versions: &str, number: u32) -> bool {
    let Some((from, to)) = versions.split_once('-') else { return true };
    from.parse().is_ok_and(|from: u32| from <= number) || to.parse().is_ok_and(|to: u32| number <= to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_lines() {
        assert!(help(Version::V15).contains("\n  -d, --debug "));
        assert!(help(Version::V18).contains("\n  -d, --dbname="));
        assert!(!help(Version::V18).contains("--continue-on-error"));
        assert!(help(Version::V19).contains("\n  --continue-on-error "));
        for version in Version::ALL {
            assert!(!help(version).contains(['{', '}']));
            assert!(help(version).lines().all(|line| line.len() < 90));
        }
    }
}
