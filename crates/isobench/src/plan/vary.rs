//! Parameters that a plan varies or sets: `NAME=VALUE,VALUE`, and the combinations of several.
//!
//! Not here: what a name means to the tables and scripts (`work.rs`).

use std::collections::BTreeMap;
use std::str::FromStr;

use isobench_pgserver::MajorVersion;

use super::values::{distinct, wrong};
use crate::failure::{Failure, Outcome};

/// The name under which the embedded server's version varies.
pub const SERVER_VERSION: &str = "server-version";

/// A parameter and the values that it gets, in the order of the table; a single one sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vary {
    /// The name, as the workload or the tables have it.
    pub name: String,
    /// Its values, as they were written.
    pub values: Vec<String>,
}

/// What each parameter is set to.
pub type Assignment = BTreeMap<String, String>;

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Vary, String> {
        let form = || format!("\"{text}\" isn't of the form NAME=VALUE,VALUE, such as scale=1,10");
        let (name, values) = text.split_once('=').ok_or_else(form)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if name.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(form());
        }
        Ok(Vary { name: name.trim().to_owned(), values })
    }
}

/// Reads what is to vary: the versions of the server, and all else.
///
/// # Errors
/// A text has another form, a name or a value is there twice, or a version isn't known.
pub fn read(texts: &[String]) -> Outcome<(Vec<MajorVersion>, Vec<Vary>)> {
    let read = |text: &String| text.parse::<Vary>().map_err(|error| wrong("vary", error));
    let mut vary = texts.iter().map(read).collect::<Outcome<Vec<Vary>>>()?;
    for (index, one) in vary.iter().enumerate() {
        distinct("vary", &one.values)?;
        if vary[..index].iter().any(|other| other.name == one.name) {
            return Err(wrong("vary", format!("{} is there twice; give all its values at once", one.name)));
        }
    }
    let place = vary.iter().position(|one| one.name == SERVER_VERSION);
    let versions = place.map(|place| vary.remove(place)).map_or_else(|| Ok(Vec::new()), |one| versions(&one));
    Ok((versions?, vary))
}

fn versions(vary: &Vary) -> Outcome<Vec<MajorVersion>> {
    let version = |text: &String| {
        text.parse::<MajorVersion>()
            .map_err(|error| Failure::setup(format!("--vary: {SERVER_VERSION}={text}: {error}")))
    };
    vary.values.iter().map(version).collect()
}

/// Every combination, the last parameter varying fastest; without parameters there is one, which
/// sets nothing.
pub fn combinations(vary: &[Vary]) -> Vec<Assignment> {
    vary.iter().fold(vec![Assignment::new()], |combinations, one| {
        let with = |so_far: &Assignment, value: &String| {
            let mut combination = so_far.clone();
            combination.insert(one.name.clone(), value.clone());
            combination
        };
        combinations.iter().flat_map(|so_far| one.values.iter().map(|value| with(so_far, value))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn every_value_meets_every_other() {
        let (versions, vary) = read(&words(&["rows=1,10", "server-version=14,18", "index=1,0"])).unwrap();
        assert_eq!(versions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["14", "18"]);
        let found: Vec<String> = combinations(&vary)
            .iter()
            .map(|combination| format!("{} {}", combination["rows"], combination["index"]))
            .collect();
        assert_eq!(found, ["1 1", "1 0", "10 1", "10 0"]);
        assert_eq!(combinations(&[]), [Assignment::new()]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (texts, told) in [
            (&["rows"][..], "NAME=VALUE"),
            (&["rows=1,,2"], "NAME=VALUE"),
            (&["=1"], "NAME=VALUE"),
            (&["rows=1,1"], "twice"),
            (&["rows=1", "rows=2"], "all its values at once"),
            (&["server-version=13"], "server-version=13"),
            (&["server-version=new"], "server-version=new"),
        ] {
            let message = read(&words(texts)).unwrap_err().to_string();
            assert!(message.starts_with("--vary: ") && message.contains(told), "{message}");
        }
    }
}
