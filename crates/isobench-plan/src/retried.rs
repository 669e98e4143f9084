//! The further errors that are retried as conflicts are, named by their SQLSTATE.
//!
//! Not here: which errors are conflicts, which is a fact about the product
//! (`isobench-database`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::WrongValue;
use crate::values::is_text;

/// The SQLSTATE of an error that is retried although it is no conflict, such as 23505 for a row
/// that another transaction inserted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RetriedState(pub [u8; 5]);

/// Beginnings of codes that a retry can't help, and why (PostgreSQL manual, "Error Codes").
const REFUSED: [(&str, &str); 13] = [
    ("00", "it isn't an error"),
    ("01", "it is a warning, which ends no transaction"),
    ("02", "it is a warning, which ends no transaction"),
    ("25P02", "it only follows an earlier error of the same transaction; name that one"),
    ("25P03", "the server ends the session with it"),
    ("25P04", "the server ends the session with it"),
    ("40003", "its transaction may have committed, so a retry could do the work twice"),
    ("08", "the session is lost with it, and the transaction may have committed"),
    ("28", "the server refuses the session"),
    ("57P", "the server ends the session with it"),
    ("53300", "the server refuses the session"),
    ("42", "the statement itself is wrong or forbidden, so each retry fails as well"),
    ("XX", "the server has an internal defect"),
];

is_text!(RetriedState);

impl FromStr for RetriedState {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<RetriedState, WrongValue> {
        let code = text.trim().to_ascii_uppercase();
        let form = || {
            WrongValue(format!(
                "\"{text}\" isn't an SQLSTATE, which has five digits or letters, such as 23505 (unique_violation)"
            ))
        };
        let bytes: [u8; 5] = code.as_bytes().try_into().map_err(|_| form())?;
        if !bytes.iter().all(u8::is_ascii_alphanumeric) {
            return Err(form());
        }
        match REFUSED.iter().find(|(beginning, _)| code.starts_with(beginning)) {
            Some((_, why)) => Err(WrongValue(format!("{code} can't be retried: {why}"))),
            None => Ok(RetriedState(bytes)),
        }
    }
}

impl fmt::Display for RetriedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_five_letters_and_ends_no_session() {
        for code in ["23505", "40001", "P0001", "55P03", "23p01"] {
            assert_eq!(code.parse::<RetriedState>().unwrap().to_string(), code.to_uppercase());
        }
        for (code, part) in [
            ("2350", "five digits or letters"),
            ("23505x", "five digits or letters"),
            ("2350ä", "five digits or letters"),
            ("23 05", "five digits or letters"),
            ("25P02", "earlier error"),
            ("40003", "may have committed"),
            ("08006", "session is lost"),
            ("57P01", "ends the session"),
            ("25P03", "ends the session"),
            ("42P01", "each retry fails"),
            ("00000", "isn't an error"),
        ] {
            let message = code.parse::<RetriedState>().unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
