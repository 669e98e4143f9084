//! Number of round trips of an attempt, counted in the text of its script.
//!
//! Not here: their duration.

use isobench_script::{Command, CommandKind, Script};

/// Returns the fewest and the most round trips of an attempt without conflicts, over all paths
/// through the script. The statements of one request or one pipeline share a round trip. Preparing
/// statements isn't counted, since it happens once per session.
pub fn round_trips(script: &Script) -> (u32, u32) {
    Walk { commands: &script.commands, at: 0, in_pipeline: false }.block()
}

/// A walk through the commands.
struct Walk<'a> {
    commands: &'a [Command],
    at: usize,
    in_pipeline: bool,
}

impl Walk<'_> {
    /// Counts up to the end of the branch or script; stops at the command that ends it.
    fn block(&mut self) -> (u32, u32) {
        let (mut least, mut most) = (0, 0);
        while let Some(command) = self.commands.get(self.at) {
            let counted = match &command.kind {
                CommandKind::Elif(_) | CommandKind::Else(_) | CommandKind::Endif => break,
                CommandKind::If(_) => self.branches(),
                CommandKind::Sql(_) if !self.in_pipeline => (1, 1),
                CommandKind::StartPipeline => {
                    self.in_pipeline = true;
                    (0, 0)
                }
                CommandKind::EndPipeline => {
                    self.in_pipeline = false;
                    (1, 1)
                }
                _ => (0, 0),
            };
            self.at += 1;
            (least, most) = (least + counted.0, most + counted.1);
        }
        (least, most)
    }

    /// Counts from an `\if` to its `\endif`, at which it stops. Without an `\else` the fewest is
    /// zero.
    fn branches(&mut self) -> (u32, u32) {
        let (mut least, mut most) = (u32::MAX, 0);
        let mut otherwise = false;
        loop {
            self.at += 1;
            let branch = self.block();
            (least, most) = (least.min(branch.0), most.max(branch.1));
            match self.commands.get(self.at).map(|command| &command.kind) {
                Some(CommandKind::Elif(_)) => {}
                Some(CommandKind::Else(_)) => otherwise = true,
                _ => break,
            }
        }
        (if otherwise { least } else { 0 }, most)
    }
}

#[cfg(test)]
mod tests {
    use isobench_script::{Symbols, builtins, parse};

    use super::round_trips;

    fn count(text: &str) -> (u32, u32) {
        round_trips(&parse("test.sql", text, &mut Symbols::new()).unwrap())
    }

    #[test]
    fn every_request_waits_once() {
        let of_builtin: Vec<(u32, u32)> = builtins().iter().map(|builtin| count(builtin.text)).collect();
        assert_eq!(of_builtin, [(7, 7), (5, 5), (1, 1)]);
        assert_eq!(count("\\set x 1\nSELECT 1\\; SELECT 2;\n"), (1, 1));
        assert_eq!(count("BEGIN;\n\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\nEND;\n"), (3, 3));
    }

    #[test]
    fn branches_make_a_range() {
        assert_eq!(count("\\if true\nSELECT 1;\n\\endif\nSELECT 2;\n"), (1, 2));
        assert_eq!(count("\\if true\nSELECT 1;\n\\else\nSELECT 2;\nSELECT 3;\n\\endif\n"), (1, 2));
        let nested =
            "\\if true\n\\if false\nSELECT 1;\n\\endif\n\\elif true\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n";
        assert_eq!(count(nested), (0, 1));
    }
}
