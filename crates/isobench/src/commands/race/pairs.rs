//! The file of `--check`: commands that must not race, a pair a line.

use std::path::Path;

use isobench_comparison::{Failure, Outcome};
use isobench_race::MOST_COMMANDS;
use serde::Deserialize;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    /// One command, which runs twice, or two or three.
    pairs: Vec<Vec<String>>,
}

/// Reads the commands that are to be tried against each other.
///
/// # Errors
/// The file can't be read, isn't TOML of this form, or has an empty pair.
pub(super) fn read(path: &Path) -> Outcome<Vec<Vec<String>>> {
    let text = isobench_trust::read_to_string(path).map_err(|error| {
        Failure::setup(format!("--check: could not read \"{}\": {error}", path.display()))
    })?;
    parse(&text).map_err(|why| Failure::setup(format!("--check: {}: {why}", path.display())))
}

fn parse(text: &str) -> Result<Vec<Vec<String>>, String> {
    let Pairs { mut pairs } =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    if pairs.is_empty() {
        return Err("there are no pairs; a pair is pairs = [[\"COMMAND\", \"COMMAND\"]]".to_owned());
    }
    for (number, pair) in (1..).zip(&mut pairs) {
        for command in pair.iter_mut() {
            *command = command.trim().to_owned();
        }
        if pair.is_empty() || pair.iter().any(String::is_empty) {
            return Err(format!("pair {number} has an empty command"));
        }
        if pair.len() > MOST_COMMANDS {
            return Err(format!("pair {number} has {} commands; give one, two or three", pair.len()));
        }
        if let [command] = pair.as_slice() {
            let again = command.clone();
            pair.push(again);
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_a_line() {
        let text =
            "pairs = [\n  [\"curl -X POST localhost/order\"],\n  [\"./order.sh\", \" ./cancel.sh\"],\n]\n";
        let expected = [["curl -X POST localhost/order"; 2], ["./order.sh", "./cancel.sh"]];
        assert_eq!(parse(text).unwrap(), expected);
        for (wrong, why) in [
            ("pairs = []", "there are no pairs"),
            ("pairs = [[]]", "pair 1 has an empty command"),
            ("pairs = [['a'], ['b', ' ']]", "pair 2 has an empty command"),
            ("pairs = [['a', 'b', 'c', 'd']]", "pair 1 has 4 commands"),
            ("pair = [['a']]", "unknown field `pair`"),
            ("pairs = ['a']", "expected a sequence"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
