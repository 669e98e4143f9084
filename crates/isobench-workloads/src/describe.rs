//! Descriptions of workloads for users.

use std::fmt::Write as _;

use crate::workload::{Parameter, Workload};

/// The width of the text, in columns.
const WIDTH: usize = 100;
/// The width of the headings, in columns.
const LEFT: usize = 14;

/// All workloads with their variants, one sentence each.
pub fn list() -> String {
    let mut text = String::new();
    for workload in crate::all() {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{:LEFT$}{}", workload.name, wrapped(workload.summary, LEFT));
        let variants = workload.variants.iter();
        let variants = variants.map(|variant| (format!("+{}", variant.name), variant.summary.to_owned()));
        section(&mut text, "", &variants.collect::<Vec<_>>());
    }
    text
}

impl Workload {
    /// A full description without the scripts: parameters, variants, invariants, proofs and limits.
    pub fn describe(&self) -> String {
        let mut text = wrapped(&format!("{}: {}", self.name, self.summary), 0) + "\n\n";
        let parameter = |parameter: &Parameter| {
            let (least, most) = parameter.range;
            let meaning = format!("{} ({least} to {most})", parameter.meaning);
            (format!("{}={}", parameter.name, parameter.default), meaning)
        };
        let named = |(name, meaning): (&str, &str)| (name.to_owned(), meaning.to_owned());
        section(&mut text, "tables", &[(String::new(), self.tables.join(", "))]);
        section(&mut text, "parameters", &self.parameters.iter().map(parameter).collect::<Vec<_>>());
        let variants = self.variants.iter().map(|variant| {
            let defaults = variant.defaults.iter().map(|(name, value)| format!("{name}={value}"));
            let defaults = defaults.collect::<Vec<_>>().join(", ");
            let meaning = match (variant.summary, defaults.as_str()) {
                (summary, "") => summary.to_owned(),
                (summary, defaults) => format!("{summary}: {defaults}"),
            };
            (variant.name.to_owned(), meaning)
        });
        section(&mut text, "variants", &variants.collect::<Vec<_>>());
        let own = self.invariants.iter().map(|invariant| named((invariant.name, invariant.meaning)));
        let of_variants = self.variants.iter().flat_map(|variant| {
            let of_variant = move |invariant: &crate::Invariant| {
                (invariant.name.to_owned(), format!("(of +{}) {}", variant.name, invariant.meaning))
            };
            variant.invariants.iter().map(of_variant)
        });
        section(&mut text, "invariants", &own.chain(of_variants).collect::<Vec<_>>());
        let assertions = self.assertions.iter().map(|assertion| named((assertion.name, assertion.meaning)));
        section(&mut text, "assertions", &assertions.collect::<Vec<_>>());
        for (heading, words) in [("proves", self.proves), ("can't show", self.blind), ("source", self.source)]
        {
            section(&mut text, heading, &[(String::new(), words.to_owned())]);
        }
        text
    }
}

/// Adds a heading with its entries (name and meaning), or nothing if there are no entries.
fn section(text: &mut String, heading: &str, entries: &[(String, String)]) {
    let names = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let indent = LEFT + if names == 0 { 0 } else { names + 2 };
    for (index, (name, meaning)) in entries.iter().enumerate() {
        let heading = if index == 0 { heading } else { "" };
        let start = format!("{heading:LEFT$}{name}");
        // Writing to a string can't fail.
        let _ = writeln!(text, "{start:indent$}{}", wrapped(meaning, indent));
    }
}

/// Wraps words into lines. The first line starts at column `indent`; the others are indented by it.
fn wrapped(words: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut column = indent;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        }
        if column > indent {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_neither_too_long_nor_cut() {
        for workload in crate::all() {
            let text = workload.describe();
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        }
    }

    #[test]
    fn meanings_stand_below_each_other() {
        let mut text = String::new();
        section(
            &mut text,
            "things",
            &[("a".to_owned(), "one".to_owned()), ("bcd".to_owned(), "two".to_owned())],
        );
        assert_eq!(text, "things        a    one\n              bcd  two\n");
    }
}
