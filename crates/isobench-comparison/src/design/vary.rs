//! Parameters that a plan varies or sets: `NAME=VALUE,VALUE`, and the combinations of several.
//!
//! Not here: the meaning of a name for tables and scripts (`work.rs`).

use std::collections::BTreeMap;

use isobench_pgserver::MajorVersion;
use isobench_plan::{SERVER_VERSION, Vary};

use super::values::{distinct, wrong};
use crate::failure::{Failure, Outcome};

/// The value of each parameter.
pub type Assignment = BTreeMap<String, String>;

/// Separates the versions of the server from the other parameters.
///
/// # Errors
/// A name or value is repeated, or a version is unknown.
pub fn split(vary: &[Vary]) -> Outcome<(Vec<MajorVersion>, Vec<Vary>)> {
    for (index, one) in vary.iter().enumerate() {
        distinct("vary", &one.values)?;
        if vary[..index].iter().any(|other| other.name == one.name) {
            return Err(wrong("vary", format!("{} is there twice; give all its values at once", one.name)));
        }
    }
    let mut vary = vary.to_vec();
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

/// Every combination, the last parameter varying fastest; without parameters a single empty one.
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

    fn read(texts: &[&str]) -> Outcome<(Vec<MajorVersion>, Vec<Vary>)> {
        split(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn every_value_meets_every_other() {
        let (versions, vary) = read(&["rows=1,10", "server-version=14,18", "index=1,0"]).unwrap();
        assert_eq!(versions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["14", "18"]);
        let found: Vec<String> = combinations(&vary)
            .iter()
            .map(|combination| format!("{} {}", combination["rows"], combination["index"]))
            .collect();
        assert_eq!(found, ["1 1", "1 0", "10 1", "10 0"]);
        assert_eq!(combinations(&[]), [Assignment::new()]);
    }

    #[test]
    fn what_is_wrong_is_reported() {
        for (texts, part) in [
            (&["rows=1,1"][..], "twice"),
            (&["rows=1", "rows=2"], "all its values at once"),
            (&["server-version=13"], "server-version=13"),
            (&["server-version=new"], "server-version=new"),
        ] {
            let message = read(texts).unwrap_err().to_string();
            assert!(message.starts_with("--vary: ") && message.contains(part), "{message}");
        }
    }
}
