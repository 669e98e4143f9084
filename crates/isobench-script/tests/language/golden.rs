//! Golden files: the parsed form, the output and the errors of scripts. `oracle.rs` compares the
//! same files with pgbench.

use std::fmt::Write as _;

use crate::support::blocks;
use crate::support::execute::{Client, execute};
use isobench_script::{CommandKind, Script, Store, Symbols, parse};

#[test]
fn parse_golden() {
    blocks::check("parse.txt", |text| {
        let mut symbols = Symbols::new();
        match parse("x.sql", text, &mut symbols) {
            Ok(script) => dump(&script, &symbols),
            Err(error) => format!("error: {error}"),
        }
    });
}

/// Lines `--@`, which to pgbench are comments, so `oracle.rs` can't check them.
#[test]
fn annotations_golden() {
    blocks::check("annotations.txt", |text| {
        let mut symbols = Symbols::new();
        match parse("x.sql", text, &mut symbols) {
            Ok(script) => dump(&script, &symbols),
            Err(error) => format!("error: {error}"),
        }
    });
}

#[test]
fn errors_golden() {
    blocks::check("errors.txt", |text| match parse("x.sql", text, &mut Symbols::new()) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    });
}

#[test]
fn run_golden() {
    blocks::check("run.txt", |text| {
        let mut symbols = Symbols::new();
        let script = match parse("x.sql", text, &mut symbols) {
            Ok(script) => script,
            Err(error) => return format!("error: {error}"),
        };
        let mut client = Client::new(0, 1, &mut symbols);
        let outcome = execute(&script, &symbols, &mut client);
        let sent = outcome.sent.iter().map(|sql| format!("sends: {sql}"));
        let error = outcome.error.iter().map(|error| format!("error: {error}"));
        outcome.debug.iter().cloned().chain(sent).chain(error).collect::<Vec<_>>().join("\n")
    });
}

/// The script as text, one command per paragraph.
fn dump(script: &Script, symbols: &Symbols) -> String {
    let mut out = String::new();
    for (index, command) in script.commands.iter().enumerate() {
        write!(out, "{index} line {}: {} {:?}", command.line, command.kind.name(), command.text)
            .expect("writes");
        match &command.kind {
            CommandKind::Sql(sql) => {
                let params: Vec<&str> = sql.params.iter().map(|slot| symbols.name(*slot)).collect();
                write!(out, "\n    {:?} {params:?} {:?}", sql.parameterized, sql.statements).expect("writes");
                if sql.store != Store::None {
                    write!(out, " {:?}", sql.store).expect("writes");
                }
                for annotation in &sql.annotations {
                    write!(out, "\n    line {}: {:?}", annotation.line, annotation.what).expect("writes");
                }
            }
            CommandKind::Set { slot, expr } => {
                write!(out, "\n    {} := {}", symbols.name(*slot), expr.display(symbols)).expect("writes");
            }
            CommandKind::If(arm) | CommandKind::Elif(arm) | CommandKind::Else(arm) => {
                if let Some(cond) = &arm.cond {
                    write!(out, "\n    {}", cond.display(symbols)).expect("writes");
                }
                write!(out, " next {} end {}", arm.next, arm.end).expect("writes");
            }
            CommandKind::Sleep { duration, unit } => {
                write!(out, "\n    {duration:?} {unit:?}").expect("writes");
            }
            CommandKind::Shell { args } => write!(out, "\n    {args:?}").expect("writes"),
            CommandKind::SetShell { slot, args } => {
                write!(out, "\n    {} := {args:?}", symbols.name(*slot)).expect("writes");
            }
            _ => {}
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}
