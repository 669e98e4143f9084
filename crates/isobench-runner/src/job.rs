//! What all workers share while a run goes on: the settings, the scripts, and who hears of events.

use isobench_pgwire::SqlState;
use isobench_script::{CommandKind, Prng, Store, Streams, Value};

use crate::client::Client;
use crate::program::{Classify, Program, Workload};
use crate::spec::RunSpec;

/// A workload with the settings it is to run under, ready to run any number of times.
pub struct Job {
    pub(crate) spec: RunSpec,
    pub(crate) workload: Workload,
    pub(crate) program: Program,
    pub(crate) classify: Box<Classify>,
}

/// Something that happened to one client and that a user wants to hear of at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The client ended before its time. The text is a whole sentence that names client, script and command; the code is
    /// the server's, if an error of the server was the cause.
    Aborted(String, Option<SqlState>),
    /// The server sent a notice to a client.
    Notice(String),
    /// The output of `debug()`.
    Debug(String),
}

/// Receives events, from any worker thread.
pub type Report<'a> = dyn Fn(Event) + Sync + 'a;

impl Job {
    /// Makes the workload ready.
    pub fn new(spec: RunSpec, workload: Workload, classify: Box<Classify>) -> Job {
        let program = Program::new(&workload.mix, spec.protocol);
        Job { spec, workload, program, classify }
    }

    /// The settings.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// The workload.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// How a report names a command: its number and its first line.
    pub fn command_label(&self, script: usize, command: usize) -> String {
        let commands = &self.workload.mix.scripts()[script].script.commands;
        format!("{command}: {}", commands[command].text.trim_end())
    }

    /// The clients of a run with their random streams, split from the seed in a fixed order: what each client's
    /// expressions draw, the variable `default_seed` (unless it is set), what each client's choice of scripts draws. So a client's transactions depend on the seed
    /// and its number only, never on the number of workers; with one client they are pgbench's.
    ///
    /// Also returns one stream for each worker's schedule.
    pub(crate) fn cast(&self) -> (Vec<Client>, Vec<Prng>) {
        let mut streams = Streams::new(self.spec.seed);
        let functions: Vec<Prng> = (0..self.spec.clients).map(|_| streams.split()).collect();
        let mut variables = self.workload.variables.clone();
        let symbols = &self.workload.symbols;
        let default_seed = symbols.lookup("default_seed");
        if !default_seed.is_some_and(|slot| variables.is_set(slot)) {
            let number = streams.number();
            if let Some(slot) = default_seed {
                variables.set(slot, Value::Int(number));
            }
        }
        let client_id = symbols.lookup("client_id");
        let choices: Vec<Prng> = (0..self.spec.clients).map(|_| streams.split()).collect();
        let schedules = (0..self.spec.workers).map(|_| streams.split()).collect();
        // Backoff draws from a seed of its own, so that a retry policy never changes the transactions.
        let mut backoffs = Streams::new(!self.spec.seed);
        let clients = functions
            .into_iter()
            .zip(choices)
            .enumerate()
            .map(|(id, (function, choice))| {
                let mut variables = variables.clone();
                if let Some(slot) = client_id {
                    variables.set(slot, Value::Int(i64::try_from(id).unwrap_or(i64::MAX)));
                }
                Client::new(id, variables, [function, choice, backoffs.split()], self.program.statements)
            })
            .collect();
        (clients, schedules)
    }

    /// The numbers of commands of the scripts.
    pub(crate) fn command_counts(&self) -> impl Iterator<Item = usize> {
        self.workload.mix.scripts().iter().map(|weighted| weighted.script.commands.len())
    }

    pub(crate) fn commands(&self, script: usize) -> &[isobench_script::Command] {
        &self.workload.mix.scripts()[script].script.commands
    }

    /// pgbench's word for what fails in a command before anything is sent: the meta-command, also `\gset` and `\aset`.
    pub(crate) fn command_kind(&self, script: usize, command: usize) -> &'static str {
        match self.commands(script).get(command).map(|command| &command.kind) {
            Some(CommandKind::Sql(sql)) => match sql.store {
                Store::None => "SQL",
                Store::Gset { .. } => "gset",
                Store::Aset { .. } => "aset",
            },
            Some(kind) => kind.name(),
            None => "end",
        }
    }

    /// Where a command stands, for messages: file, line and text.
    pub(crate) fn place(&self, script: usize, command: usize) -> String {
        let script = &self.workload.mix.scripts()[script].script;
        script.commands.get(command).map_or_else(String::new, |at| {
            format!("\n  at {}:{}: {}", script.name, at.line, at.text.trim_end())
        })
    }
}
