//! What pgbench says of a client's errors, retries and steps while a run goes on.
//!
//! Not here: where that is shown (`console.rs`).

use isobench_runner::{Cause, Event, Failed, Job, Place, Step, Unfinished};
use isobench_script::{Argument, Command, CommandKind, EvalError, Operand, SleepUnit};

use crate::version::Version;

/// How a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As an error.
    Error,
    /// With the program's name only.
    Info,
    /// As it is.
    Plain,
}

/// The messages for an event, each maybe of several lines, without the last line's end.
pub fn messages(event: &Event, job: &Job, version: Version) -> Vec<(Kind, String)> {
    match event {
        Event::Aborted(place, cause) => {
            abort(*place, cause, job).into_iter().map(|text| (Kind::Error, text)).collect()
        }
        Event::Abandoned(..) => Vec::new(),
        Event::Failed(place, failed) => vec![(Kind::Info, failure(*place, failed))],
        Event::Follows { client, retry, tries, used } => {
            let most = job.spec().retry.max_tries.map_or(String::new(), |most| format!("/{most}"));
            let used = used.map_or(String::new(), |used| {
                format!(", {:.3}% of the maximum time of tries was used", used * 100.0)
            });
            let what = if *retry {
                "repeats the transaction after the error"
            } else {
                "ends the failed transaction"
            };
            vec![(Kind::Info, format!("client {client} {what} (try {tries}{most}{used})"))]
        }
        Event::NotPrepared(failed) => vec![(Kind::Error, report(failed))],
        Event::Notice(notice) => vec![(Kind::Plain, notice.report(None))],
        Event::Debug(text) => vec![(Kind::Plain, text.clone())],
        Event::Trace { client, step } => vec![(Kind::Info, trace(*client, step, job, version))],
    }
}

/// What is said of an error after which the client goes on.
pub fn failure(place: Place, failed: &Failed) -> String {
    let Place { client, script, command } = place;
    format!("client {client} got an error in command {command} (SQL) of script {script}; {}", report(failed))
}

fn report(failed: &Failed) -> String {
    failed.error.report(failed.text.as_deref())
}

fn abort(place: Place, cause: &Cause, job: &Job) -> Vec<String> {
    let Place { client, script, command } = place;
    let kind = job.command_kind(script, command);
    let in_command = format!("client {client} aborted in command {command} ({kind}) of script {script}");
    let in_query = |query: u32, text: &str| {
        format!("client {client} script {script} aborted in command {command} query {query}: {text}")
    };
    match cause {
        Cause::Server(failed) => vec![in_query(failed.query, &report(failed))],
        Cause::Evaluation(why) => {
            // Of an empty text, such as \gset makes of NULL, it only says that it is no value.
            let silent = matches!(why, EvalError::MalformedVariable { text, .. } if text.is_empty());
            let why = (!silent).then(|| why.to_string());
            why.into_iter().chain([format!("{in_command}; evaluation of meta-command failed")]).collect()
        }
        Cause::Execution(why) => {
            vec![why.clone(), format!("{in_command}; execution of meta-command failed")]
        }
        Cause::NotAllowed(why) => vec![format!("{in_command}; {why}")],
        Cause::Result { query, problem, name } => {
            let name = name.as_ref().map(|name| format!("{kind}: invalid variable name: \"{name}\""));
            let last = format!("client {client} script {script} command {command} query {query}: {problem}");
            name.into_iter().chain([last]).collect()
        }
        Cause::Unfinished(left) => {
            let what = match left {
                Unfinished::Block => "without completing the last transaction",
                Unfinished::Pipeline => "with pipeline open",
            };
            vec![format!("client {client} aborted: end of script reached {what}")]
        }
        Cause::Copy => vec!["COPY is not supported in pgbench, aborting".to_owned()],
        Cause::Connect(why) => {
            vec![why.clone(), format!("client {client} aborted while establishing connection")]
        }
        Cause::Lost(_, Some(last)) => vec![in_query(0, &last.report(None))],
        Cause::Lost(_, None) => {
            vec![format!("{in_command}; perhaps the backend died while processing")]
        }
    }
}

fn trace(client: usize, step: &Step, job: &Job, version: Version) -> String {
    let scripts = job.workload().mix.scripts();
    let what = match step {
        Step::Script(script) => format!("executing script \"{}\"", scripts[*script].script.name),
        Step::Command(script, command) => {
            format!("executing {}", command_text(&scripts[*script].script.commands[*command], job))
        }
        Step::Preparing(name) => format!("preparing {name}"),
        Step::Sending(text) => format!("sending {text}"),
        Step::ShellValue(command, value) => {
            let mut words = command.split_ascii_whitespace();
            let mut word = || words.next().unwrap_or_default();
            return format!("{}: shell parameter name: \"{}\", value: \"{value}\"", word(), word());
        }
        Step::Receiving => "receiving".to_owned(),
        Step::EndingPipeline(syncs) if version.dialect().syncpipeline => {
            format!("pipeline ending, ongoing syncs: {syncs}")
        }
        Step::EndingPipeline(_) => "pipeline ending".to_owned(),
    };
    format!("client {client} {what}")
}

/// A meta-command with its words, but without its expression.
fn command_text(command: &Command, job: &Job) -> String {
    let symbols = &job.workload().symbols;
    let mut words = vec![format!("\\{}", command.kind.name())];
    let mut add = |args: &[Argument]| {
        words.extend(args.iter().map(|argument| match argument {
            Argument::Literal(text) => text.clone(),
            Argument::Variable(slot) => format!(":{}", symbols.name(*slot)),
        }));
    };
    match &command.kind {
        CommandKind::Shell { args } => add(args),
        CommandKind::SetShell { slot, args } => {
            add(&[Argument::Literal(symbols.name(*slot).to_owned())]);
            add(args);
        }
        CommandKind::Set { slot, .. } => words.push(symbols.name(*slot).to_owned()),
        CommandKind::Sleep { duration, unit } => {
            words.push(match duration {
                Operand::Number(number) => number.to_string(),
                Operand::Variable(slot) => format!(":{}", symbols.name(*slot)),
            });
            words.push(
                match unit {
                    SleepUnit::Microseconds => "us",
                    SleepUnit::Milliseconds => "ms",
                    SleepUnit::Seconds => "s",
                }
                .to_owned(),
            );
        }
        _ => {}
    }
    words.join(" ")
}
