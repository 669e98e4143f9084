//! pgbench's initialisation steps and their letters.

use std::fmt;
use std::str::FromStr;

/// One step of an initialisation (pgbench: `-I`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitStep {
    /// `d`: drops the tables.
    DropTables,
    /// `t`: creates the tables.
    CreateTables,
    /// `g`: fills them with client-side rows.
    ClientGenerate,
    /// `G`: fills them with rows made by the server.
    ServerGenerate,
    /// `v`: vacuums and analyzes them.
    Vacuum,
    /// `p`: adds the primary keys.
    PrimaryKeys,
    /// `f`: adds the foreign keys.
    ForeignKeys,
}

/// The steps and their letters, in pgbench's order.
const STEPS: [(InitStep, char); 7] = [
    (InitStep::DropTables, 'd'),
    (InitStep::CreateTables, 't'),
    (InitStep::ClientGenerate, 'g'),
    (InitStep::ServerGenerate, 'G'),
    (InitStep::Vacuum, 'v'),
    (InitStep::PrimaryKeys, 'p'),
    (InitStep::ForeignKeys, 'f'),
];

impl InitStep {
    /// The letter in `-I`.
    pub fn letter(self) -> char {
        STEPS.iter().find(|row| row.0 == self).unwrap_or(&STEPS[0]).1
    }
}

/// The steps of an initialisation, in order; steps may repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps(Vec<InitStep>);

impl Steps {
    /// The steps in order.
    pub fn iter(&self) -> impl Iterator<Item = InitStep> + '_ {
        self.0.iter().copied()
    }

    /// True if the step is among them.
    pub fn contains(&self, step: InitStep) -> bool {
        self.0.contains(&step)
    }

    /// The steps without `v` (pgbench: `-n` together with `-i`).
    #[must_use]
    pub fn without_vacuum(mut self) -> Self {
        self.0.retain(|step| *step != InitStep::Vacuum);
        self
    }

    /// The steps with `f` at the end unless it is there (pgbench: `--foreign-keys`).
    #[must_use]
    pub fn with_foreign_keys(mut self) -> Self {
        if !self.contains(InitStep::ForeignKeys) {
            self.0.push(InitStep::ForeignKeys);
        }
        self
    }
}

impl From<Vec<InitStep>> for Steps {
    fn from(steps: Vec<InitStep>) -> Self {
        Steps(steps)
    }
}

impl Default for Steps {
    /// pgbench's default, `dtgvp`.
    fn default() -> Self {
        use InitStep::{ClientGenerate, CreateTables, DropTables, PrimaryKeys, Vacuum};
        Steps(vec![DropTables, CreateTables, ClientGenerate, Vacuum, PrimaryKeys])
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.iter().map(InitStep::letter).collect::<String>())
    }
}

/// An invalid text of steps; message and detail are pgbench's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepsError {
    /// It contains no step.
    #[error("no initialization steps specified")]
    Empty,
    /// This letter isn't a step.
    #[error("unrecognized initialization step \"{0}\"")]
    Unknown(char),
}

impl StepsError {
    /// pgbench's line `detail:`.
    pub fn detail(&self) -> Option<String> {
        match self {
            StepsError::Empty => None,
            StepsError::Unknown(_) => Some(format!(
                "Allowed step characters are: \"{}\".",
                STEPS.iter().map(|row| row.1).collect::<String>()
            )),
        }
    }
}

impl FromStr for Steps {
    type Err = StepsError;

    /// Parses letters; blanks between them are ignored.
    fn from_str(text: &str) -> Result<Self, StepsError> {
        if text.is_empty() {
            return Err(StepsError::Empty);
        }
        text.chars()
            .filter(|letter| *letter != ' ')
            .map(|letter| {
                let row = STEPS.iter().find(|row| row.1 == letter);
                row.map(|row| row.0).ok_or(StepsError::Unknown(letter))
            })
            .collect::<Result<_, _>>()
            .map(Steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_steps() {
        assert_eq!("dtgvp".parse::<Steps>(), Ok(Steps::default()));
        assert_eq!("d t\u{20}G p f".parse::<Steps>().unwrap().to_string(), "dtGpf");
        assert_eq!(Steps::default().without_vacuum().with_foreign_keys().to_string(), "dtgpf");
        assert_eq!("f".parse::<Steps>().unwrap().with_foreign_keys().to_string(), "f");
        for (step, letter) in STEPS {
            assert_eq!((step.letter(), letter.to_string().parse()), (letter, Ok(Steps(vec![step]))));
        }
    }

    #[test]
    fn errors_are_in_the_words_of_pgbench() {
        let error = "dtx".parse::<Steps>().unwrap_err();
        assert_eq!(error.to_string(), "unrecognized initialization step \"x\"");
        assert_eq!(error.detail().unwrap(), "Allowed step characters are: \"dtgGvpf\".");
        assert_eq!("".parse::<Steps>(), Err(StepsError::Empty));
    }
}
