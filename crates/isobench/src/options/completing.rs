//! What a shell offers as values of options: names that only isobench knows, such as levels and
//! workloads.
//!
//! Not here: how a shell asks (`clap_complete`), and options, which clap knows by itself.

use std::ffi::OsStr;
use std::path::Path;

use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use isobench_isolation::Level;
use isobench_plan::{Background, FIGURES, PUBLISHED, StandbyMode};
use isobench_script::builtins as built_in;
use isobench_workloads::{all, strategies};

use crate::{latest, saved};

/// Names, each with an explanation in a few words; files, too, if `or_file`.
struct Names {
    names: fn() -> Vec<(String, String)>,
    or_file: bool,
}

impl ValueCompleter for Names {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begun = current.to_string_lossy();
        let named = (self.names)().into_iter().filter(|(name, _)| name.starts_with(&*begun));
        let candidate = |(name, about): (String, String)| {
            let about = Some(about).filter(|about| !about.is_empty());
            CompletionCandidate::new(name).help(about.map(Into::into))
        };
        let mut found: Vec<CompletionCandidate> = named.map(candidate).collect();
        if self.or_file {
            found.extend(PathCompleter::any().complete(current));
        }
        found
    }
}

/// The options whose values have names.
const OPTIONS: [(&str, Names); 18] = [
    ("levels", Names { names: levels, or_file: false }),
    ("isolation", Names { names: levels, or_file: false }),
    ("workload", Names { names: workloads, or_file: true }),
    ("builtin", Names { names: builtins, or_file: false }),
    ("plan_file", Names { names: plans, or_file: true }),
    ("plan", Names { names: plans, or_file: false }),
    ("strategies", Names { names: strategy_names, or_file: false }),
    ("vary", Names { names: parameters, or_file: false }),
    ("background", Names { names: backgrounds, or_file: false }),
    ("standby", Names { names: standbys, or_file: false }),
    ("fault", Names { names: faults, or_file: false }),
    ("protocol", Names { names: protocols, or_file: false }),
    ("metric", Names { names: figures, or_file: false }),
    ("by", Names { names: axes, or_file: false }),
    ("result", Names { names: results, or_file: false }),
    ("a", Names { names: results, or_file: true }),
    ("b", Names { names: results, or_file: true }),
    ("named", Names { names: results, or_file: true }),
];

/// The command with what a shell may offer.
pub fn with_values(command: Command) -> Command {
    command.mut_subcommands(|command| {
        let mut command = with_values(command);
        for (id, names) in OPTIONS {
            if command.get_arguments().any(|arg| arg.get_id() == id) {
                command = command.mut_arg(id, |arg| arg.add(ArgValueCompleter::new(names)));
            }
        }
        command
    })
}

fn plain(names: impl IntoIterator<Item = impl ToString>) -> Vec<(String, String)> {
    names.into_iter().map(|name| (name.to_string(), String::new())).collect()
}

fn levels() -> Vec<(String, String)> {
    Level::ALL.iter().map(|level| (level.short().to_owned(), level.name().to_owned())).collect()
}

fn workloads() -> Vec<(String, String)> {
    let checked = all().iter().map(|workload| (workload.name.to_owned(), workload.summary.to_owned()));
    checked.chain(builtins()).collect()
}

fn builtins() -> Vec<(String, String)> {
    built_in().iter().map(|builtin| (builtin.name.to_owned(), builtin.description.to_owned())).collect()
}

fn plans() -> Vec<(String, String)> {
    plain(PUBLISHED.iter().map(|plan| plan.name))
}

fn strategy_names() -> Vec<(String, String)> {
    plain(strategies().iter().map(|strategy| strategy.name))
}

/// What can be varied whatever the workload, and the parameters of workloads.
fn parameters() -> Vec<(String, String)> {
    let general = [
        "scale=",
        "foreign-keys=off,on",
        "unlogged-tables=off,on",
        "fillfactor=",
        "script-scale=",
        "server-version=",
        "server-bin=",
        "setting:synchronous_commit=off,on",
        "setting:fsync=off,on",
        "setting:wal_compression=off,on",
        "setting:max_pred_locks_per_transaction=",
        "setting:shared_buffers=",
        "setting:",
    ];
    let parameters =
        all().iter().flat_map(|workload| workload.parameters.iter().map(move |one| (workload, one)));
    let named = parameters.map(|(workload, one)| (format!("{}=", one.name), format!("of {}", workload.name)));
    plain(general).into_iter().chain(named).collect()
}

fn backgrounds() -> Vec<(String, String)> {
    plain(Background::ALL)
}

fn standbys() -> Vec<(String, String)> {
    plain(StandbyMode::ALL)
}

fn faults() -> Vec<(String, String)> {
    plain([
        "crash@",
        "stop:fast@",
        "stop:immediate@",
        "promote@",
        "backend@",
        "freeze:",
        "partition:",
        "partition-standby:",
        "disconnect@",
        "command@",
        "none",
    ])
}

fn figures() -> Vec<(String, String)> {
    FIGURES.iter().map(|row| (row.name.to_owned(), row.meaning.to_owned())).collect()
}

fn axes() -> Vec<(String, String)> {
    plain(["time", "tag:", "server-version", "setting:"])
}

/// The names and tags of the results in the default folder, without reading the results.
fn results() -> Vec<(String, String)> {
    saved::words(Path::new(latest::FOLDER)).into_iter().map(|word| (word, String::new())).collect()
}

fn protocols() -> Vec<(String, String)> {
    plain(isobench_runner::Protocol::ALL.map(isobench_runner::Protocol::name))
}
