//! The mark of scripts whose SQL was recorded: nobody who runs them has written it.
//!
//! A recorded text is data. A script with this mark runs no program, whatever its SQL holds.

/// The start of the line that marks a script. To pgbench it is a comment.
pub const RECORDED: &str = "--@ recorded";

/// True if a script has the mark among the comments before its first command.
pub fn is_recorded(script: &str) -> bool {
    let lines = script.split(['\n', '\r']).map(|line| line.trim_matches([' ', '\t']));
    lines.filter(|line| !line.is_empty()).take_while(|line| line.starts_with("--")).any(is_mark)
}

/// True for the line of the mark: after it anything may follow that is no part of its word.
pub(crate) fn is_mark(line: &str) -> bool {
    line.strip_prefix(RECORDED).is_some_and(|rest| {
        !rest.starts_with(|letter: char| letter.is_alphanumeric() || "_-".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_comes_before_the_first_command() {
        for marked in [
            "--@ recorded",
            "--@ recorded 40 times\nSELECT 1;",
            "\r\n  -- mine\n --@ recorded: x\nSELECT 1;",
            "-- a\r--@ recorded\rSELECT 1;",
        ] {
            assert!(is_recorded(marked), "{marked:?}");
        }
        for not in
            ["", "SELECT 1;\n--@ recorded", "-- @ recorded", "--@ recorded-later", "/* */ --@ recorded"]
        {
            assert!(!is_recorded(not), "{not:?}");
        }
    }
}
