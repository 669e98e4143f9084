//! A schedule: who runs, and for how many steps, until it is the next one's turn.

use std::fmt;

use crate::RaceError;

/// The most commands of a race.
pub const MOST_COMMANDS: usize = 3;

/// A turn of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Turn {
    /// The number of the command, from 0.
    pub command: usize,
    /// The number of its steps; `None` for all that are left.
    pub steps: Option<u32>,
}

/// Turns in their order. After the last one every command runs to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Schedule(pub Vec<Turn>);

/// The name of a command: A, B or C.
pub fn name(command: usize) -> char {
    char::from(b'A' + u8::try_from(command).unwrap_or(0).min(25))
}

impl Schedule {
    /// The commands one after the other.
    pub fn serial(order: &[usize]) -> Self {
        Self(order.iter().map(|command| Turn { command: *command, steps: None }).collect())
    }

    /// One switch: `steps` of a command, then the others, then its rest.
    pub fn split(command: usize, steps: u32, others: &[usize]) -> Self {
        let first = Turn { command, steps: Some(steps) };
        let rest = others.iter().map(|command| Turn { command: *command, steps: None });
        Self(std::iter::once(first).chain(rest).collect())
    }

    /// Reads a schedule as it is written: `A3,B`.
    ///
    /// # Errors
    /// It names a command that isn't there, or isn't a list of commands.
    pub fn read(text: &str, commands: usize) -> Result<Self, RaceError> {
        let wrong = |why: String| RaceError::Schedule { text: text.to_owned(), why };
        let mut turns = Vec::new();
        for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
            let mut letters = part.chars();
            let letter = letters.next().unwrap_or_default().to_ascii_uppercase();
            let command = (0..commands).find(|command| name(*command) == letter);
            let command = command.ok_or_else(|| wrong(format!("there is no command \"{letter}\"")))?;
            let steps = match letters.as_str() {
                "" => None,
                digits => match digits.parse() {
                    Ok(steps @ 1..) => Some(steps),
                    _ => return Err(wrong(format!("\"{digits}\" is no number of statements"))),
                },
            };
            turns.push(Turn { command, steps });
        }
        if turns.is_empty() {
            return Err(wrong("it is empty".to_owned()));
        }
        Ok(Self(turns))
    }

    /// The commands in it, each once.
    pub(crate) fn commands(&self) -> Vec<usize> {
        let mut commands: Vec<usize> = self.0.iter().map(|turn| turn.command).collect();
        commands.sort_unstable();
        commands.dedup();
        commands
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, turn) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}", name(turn.command))?;
            if let Some(steps) = turn.steps {
                write!(f, "{steps}")?;
            }
        }
        Ok(())
    }
}

/// All orders of some commands.
pub(crate) fn orders(commands: &[usize]) -> Vec<Vec<usize>> {
    if commands.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let others: Vec<usize> = commands.iter().copied().filter(|other| *other != first).collect();
        orders(&others).into_iter().map(move |rest| std::iter::once(first).chain(rest).collect())
    };
    commands.iter().copied().flat_map(with_first).collect()
}

/// All selections of at least one of some commands, the smallest first.
pub(crate) fn selections(commands: &[usize]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = (1_u32..1 << commands.len().min(16))
        .map(|bits| {
            let chosen = commands.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            chosen.map(|(_, command)| *command).collect()
        })
        .collect();
    found.sort_by_key(Vec::len);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_written_as_they_are_read() {
        for text in ["A3,B", "B1,A,C", "A", "A2,B1,A"] {
            assert_eq!(Schedule::read(text, 3).expect(text).to_string(), text);
        }
        assert_eq!(Schedule::read("a3 b", 2), Ok(Schedule::split(0, 3, &[1])));
        for wrong in ["", "C1", "A0", "Ax", "3", ","] {
            let error = Schedule::read(wrong, 2).expect_err(wrong).to_string();
            assert!(error.contains("--schedule"), "{error}");
        }
    }

    #[test]
    fn orders_and_selections() {
        assert_eq!(orders(&[0, 1]), [[0, 1], [1, 0]]);
        assert_eq!(orders(&[0, 1, 2]).len(), 6);
        assert_eq!(selections(&[0, 1]), [vec![0], vec![1], vec![0, 1]]);
    }
}
