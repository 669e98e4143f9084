//! What a shell offers as values of options: names that only isobench knows, such as levels and
//! workloads.
//!
//! Not here: how a shell asks (`clap_complete`), and options, which clap knows by itself.

use std::ffi::OsStr;
use std::path::Path;

use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use isobench_isolation::Level;
use isobench_plan::{Background, PUBLISHED, StandbyMode};
use isobench_result::FIGURES;
use isobench_script::builtins as built_in;
use isobench_workloads::{Parameter, Variant, Workload, all, strategies};

use crate::{latest, saved};

/// Names that may follow what is typed so far, each with an explanation in a few words; files, too,
/// if `or_file`.
struct Names {
    names: fn(&str) -> Vec<(String, String)>,
    or_file: bool,
}

impl ValueCompleter for Names {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begun = current.to_string_lossy();
        let named = (self.names)(&begun).into_iter().filter(|(name, _)| name.starts_with(&*begun));
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
const OPTIONS: [(&str, Names); 16] = [
    ("levels", Names { names: levels, or_file: false }),
    ("isolation", Names { names: levels, or_file: false }),
    ("workload", Names { names: workloads, or_file: true }),
    ("builtin", Names { names: builtins, or_file: false }),
    ("plan_file", Names { names: plans, or_file: true }),
    ("plan", Names { names: plans, or_file: false }),
    ("strategies", Names { names: strategy_names, or_file: false }),
    ("vary", Names { names: parameters, or_file: false }),
    ("settings", Names { names: server_settings, or_file: false }),
    ("background", Names { names: backgrounds, or_file: false }),
    ("standby", Names { names: standbys, or_file: false }),
    ("fault", Names { names: faults, or_file: false }),
    ("protocol", Names { names: protocols, or_file: false }),
    ("metric", Names { names: figures, or_file: false }),
    ("by", Names { names: axes, or_file: false }),
    ("saved", Names { names: results, or_file: true }),
];

/// PostgreSQL's settings on which the cost of transactions and the number of conflicts depend, with
/// values to compare where they are a few.
const SETTINGS: [(&str, &str); 25] = [
    ("autovacuum", "off,on"),
    ("checkpoint_timeout", ""),
    ("commit_delay", ""),
    ("commit_siblings", ""),
    ("deadlock_timeout", ""),
    ("enable_seqscan", "off,on"),
    ("fsync", "off,on"),
    ("full_page_writes", "off,on"),
    ("io_method", "worker,sync"),
    ("jit", "off,on"),
    ("lock_timeout", ""),
    ("log_lock_waits", "off,on"),
    ("max_connections", ""),
    ("max_parallel_workers_per_gather", ""),
    ("max_pred_locks_per_page", ""),
    ("max_pred_locks_per_relation", ""),
    ("max_pred_locks_per_transaction", ""),
    ("max_wal_size", ""),
    ("random_page_cost", ""),
    ("shared_buffers", ""),
    ("synchronous_commit", "off,on"),
    ("track_io_timing", "off,on"),
    ("wal_compression", "off,on"),
    ("wal_level", "minimal,replica,logical"),
    ("work_mem", ""),
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

fn levels(_: &str) -> Vec<(String, String)> {
    Level::ALL.iter().map(|level| (level.short().to_owned(), level.name().to_owned())).collect()
}

/// Workloads; behind `NAME+` the variants, behind `NAME:` and a comma the parameters.
fn workloads(begun: &str) -> Vec<(String, String)> {
    let name = begun.split(['+', ':']).next().unwrap_or_default();
    let workload = all().iter().find(|workload| workload.name == name);
    match (workload, begun.rfind(['+', ':', ','])) {
        (Some(workload), Some(at)) if begun[at..].starts_with('+') => {
            let named = |variant: &Variant| (format!("{name}+{}", variant.name), variant.summary.to_owned());
            workload.variants.iter().map(named).collect()
        }
        (Some(workload), Some(at)) => {
            let named = |one: &Parameter| (format!("{}{}=", &begun[..=at], one.name), one.meaning.to_owned());
            workload.parameters.iter().map(named).collect()
        }
        _ => {
            let named = |workload: &&Workload| (workload.name.to_owned(), workload.summary.to_owned());
            all().iter().map(named).chain(builtins(begun)).collect()
        }
    }
}

fn builtins(_: &str) -> Vec<(String, String)> {
    built_in().iter().map(|builtin| (builtin.name.to_owned(), builtin.description.to_owned())).collect()
}

fn plans(_: &str) -> Vec<(String, String)> {
    plain(PUBLISHED.iter().map(|plan| plan.name))
}

fn strategy_names(_: &str) -> Vec<(String, String)> {
    plain(strategies().iter().map(|strategy| strategy.name))
}

/// What can be varied whatever the workload, and the parameters of workloads.
fn parameters(_: &str) -> Vec<(String, String)> {
    let general = [
        "scale=",
        "foreign-keys=off,on",
        "unlogged-tables=off,on",
        "fillfactor=",
        "script-scale=",
        "server-version=",
        "server-bin=",
    ];
    let settings = SETTINGS.iter().map(|(name, values)| format!("setting:{name}={values}"));
    let parameters =
        all().iter().flat_map(|workload| workload.parameters.iter().map(move |one| (workload, one)));
    let named = parameters.map(|(workload, one)| (format!("{}=", one.name), format!("of {}", workload.name)));
    plain(general).into_iter().chain(plain(settings)).chain(named).collect()
}

fn server_settings(_: &str) -> Vec<(String, String)> {
    plain(SETTINGS.iter().map(|(name, _)| format!("{name}=")))
}

fn backgrounds(_: &str) -> Vec<(String, String)> {
    plain(Background::ALL)
}

fn standbys(_: &str) -> Vec<(String, String)> {
    plain(StandbyMode::ALL)
}

fn faults(_: &str) -> Vec<(String, String)> {
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

fn figures(_: &str) -> Vec<(String, String)> {
    FIGURES.iter().map(|row| (row.name.to_owned(), row.meaning.to_owned())).collect()
}

fn axes(_: &str) -> Vec<(String, String)> {
    plain(["time", "tag:", "server-version", "setting:"])
}

/// The names and tags of the results in the default folder, without reading the results.
fn results(_: &str) -> Vec<(String, String)> {
    saved::words(Path::new(latest::FOLDER)).into_iter().map(|word| (word, String::new())).collect()
}

fn protocols(_: &str) -> Vec<(String, String)> {
    plain(isobench_runner::Protocol::ALL.map(isobench_runner::Protocol::name))
}
