//! The scripts of a run: found by name or file, parsed with pgbench's messages, and converted for
//! the runner.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};

use isobench_runner::{Protocol, RunWorkload};
use isobench_script::{
    Builtin, CommandKind, Mix, MixError, Script, Sql, Symbols, Value, Variables, Weighted, builtins,
    find_builtin, parse, parse_as, split_weight,
};

use crate::console::Message;
use crate::version::Version;

/// Maximum number of scripts of a run.
const MOST: usize = 128;

/// The scripts given so far, parsed.
#[derive(Debug, Clone, Default)]
pub struct Scripts {
    weighted: Vec<Weighted>,
    symbols: Symbols,
    builtin: bool,
}

impl Scripts {
    /// Adds a built-in script, by its name or an unambiguous prefix of it, with an optional
    /// `@weight` (pgbench: `-b`).
    ///
    /// # Errors
    /// The name is unknown or ambiguous; the weight is invalid; there are too many scripts.
    pub fn add_builtin(&mut self, argument: &str) -> Result<(), Message> {
        let (name, weight) = split_weight(argument).map_err(Message::error)?;
        let builtin = find(name)?;
        let parsed = parse(builtin.description, builtin.text, &mut self.symbols);
        let script = parsed.map_err(Message::error)?;
        self.add(script, weight)?;
        self.builtin = true;
        Ok(())
    }

    /// Adds a script file, `-` for standard input, with an optional `@weight` (pgbench: `-f`).
    ///
    /// # Errors
    /// The file can't be read, is empty or has an error; the weight is invalid; there are too many
    /// scripts.
    pub fn add_file(&mut self, argument: &str, version: Version) -> Result<(), Message> {
        let (name, weight) = split_weight(argument).map_err(Message::error)?;
        let mut bytes = read(name)?;
        // In C a string ends there.
        bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
        let text = String::from_utf8_lossy(&bytes);
        let script = parse_as(version.dialect(), name, &text, &mut self.symbols).map_err(Message::error)?;
        if matches!(text, std::borrow::Cow::Owned(_)) && script.commands.iter().any(is_damaged) {
            let text = format_args!("could not read file \"{name}\": a command is not in UTF-8").to_string();
            return Err(Message::error(text));
        }
        self.add(script, weight)
    }

    fn add(&mut self, script: Script, weight: u64) -> Result<(), Message> {
        if self.weighted.len() >= MOST {
            return Err(Message::error(MixError::TooMany));
        }
        self.weighted.push(Weighted { script, weight });
        Ok(())
    }

    /// Returns whether there are no scripts yet.
    pub fn is_empty(&self) -> bool {
        self.weighted.is_empty()
    }

    /// Returns whether a built-in script is included; if so, the scale is that of the tables.
    pub fn has_builtin(&self) -> bool {
        self.builtin
    }

    /// The scripts in the order given.
    pub fn weighted(&self) -> &[Weighted] {
        &self.weighted
    }

    /// The sum of the weights.
    pub fn total_weight(&self) -> u64 {
        self.weighted.iter().fold(0, |sum, weighted| sum.saturating_add(weighted.weight))
    }

    /// Checks the limits of the protocol.
    ///
    /// # Errors
    /// A command has more parameters than the extended protocol takes.
    pub fn check_parameters(&self, protocol: Protocol) -> Result<(), Message> {
        if protocol == Protocol::Simple {
            return Ok(());
        }
        let mut statements = self.weighted.iter().flat_map(|weighted| weighted.script.sql());
        if let Some(sql) = statements.find(|sql| sql.has_too_many_params()) {
            return Err(Message::error(format_args!(
                "statement has too many arguments (maximum is {}): {}",
                Sql::MAX_PARAMS,
                sql.as_written()
            )));
        }
        Ok(())
    }

    /// Returns the workload for the runner. The variables start with the values of `-D`; `scale`
    /// and `random_seed` get a default; the runner sets `client_id` and `default_seed`.
    ///
    /// # Errors
    /// The scripts don't make a mix.
    pub fn workload(
        mut self,
        scale: i64,
        seed: u64,
        defines: &[(String, String)],
    ) -> Result<RunWorkload, Message> {
        let automatic = [("scale", scale), ("random_seed", seed.cast_signed())];
        let mut variables = Variables::new(&self.symbols);
        for (name, value) in automatic {
            let slot = self.symbols.intern(name);
            variables.set(slot, Value::Int(value));
        }
        for (name, value) in defines {
            let slot = self.symbols.intern(name);
            variables.set_text(slot, value);
        }
        let mix = Mix::new(self.weighted).map_err(Message::error)?;
        Ok(RunWorkload { mix, symbols: self.symbols, variables })
    }
}

/// The names and descriptions of the built-in scripts, and an empty line (pgbench: `-b list`).
pub fn list() -> String {
    let mut out = String::from("Available builtin scripts:\n");
    for builtin in builtins() {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{:>15}: {}", builtin.name, builtin.description);
    }
    out.push('\n');
    out
}

/// Returns a built-in script as `--show-script` prints it.
///
/// # Errors
/// The name is unknown or ambiguous.
pub fn show(name: &str) -> Result<String, Message> {
    let Builtin { name, description, text } = find(name)?;
    Ok(format!("-- {name}: {description}\n{text}\n"))
}

fn find(name: &str) -> Result<&'static Builtin, Message> {
    find_builtin(name).map_err(|error| Message::error(error).then_plain(list()))
}

/// Reads a file or standard input.
fn read(name: &str) -> Result<Vec<u8>, Message> {
    let failed = |what: &str, error: &io::Error| {
        // Without the number that Rust adds to the system's message.
        let text = error.to_string();
        let reason = text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason);
        Message::error(format_args!("could not {what} file \"{name}\": {reason}"))
    };
    let mut bytes = Vec::new();
    if name == "-" {
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| failed("read", &error))?;
    } else {
        let mut file = File::open(name).map_err(|error| failed("open", &error))?;
        file.read_to_end(&mut bytes).map_err(|error| failed("read", &error))?;
    }
    Ok(bytes)
}

/// Returns whether a command has a character that replaces invalid UTF-8. In comments between
/// commands it is harmless.
fn is_damaged(command: &isobench_script::Command) -> bool {
    let text = match &command.kind {
        CommandKind::Sql(sql) => &sql.parameterized,
        _ => &command.text,
    };
    text.contains(char::REPLACEMENT_CHARACTER)
}
