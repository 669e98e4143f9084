//! pgbench's messages about a client's errors, retries and steps during a run.

use isobench_script::{Argument, Command, CommandKind, Dialect, EvalError};

use crate::event::{AbortCause, ClientEvent, ClientStep, CommandPlace, FailedStatement, Unfinished};
use crate::job::Job;

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageForm {
    /// As an error.
    Error,
    /// With the program's name only.
    Info,
    /// Without additions.
    Plain,
}

/// The messages for an event, each of one or more lines, without the last line end.
pub fn messages(event: &ClientEvent, job: &Job, dialect: Dialect) -> Vec<(MessageForm, String)> {
    match event {
        ClientEvent::Aborted(place, cause) => {
            abort(*place, cause, job).into_iter().map(|text| (MessageForm::Error, text)).collect()
        }
        // pgbench's own clients end with their session.
        ClientEvent::Abandoned(..) | ClientEvent::LostSession(..) | ClientEvent::Sends(..) => Vec::new(),
        ClientEvent::Failed(place, failed) => vec![(MessageForm::Info, failure(*place, failed))],
        ClientEvent::Follows { client, retry, tries, used } => {
            let most = job.spec().retry.max_tries.map_or(String::new(), |most| format!("/{most}"));
            let used = used.map_or(String::new(), |used| {
                format!(", {:.3}% of the maximum time of tries was used", used * 100.0)
            });
            let what = if *retry {
                "repeats the transaction after the error"
            } else {
                "ends the failed transaction"
            };
            vec![(MessageForm::Info, format!("client {client} {what} (try {tries}{most}{used})"))]
        }
        ClientEvent::NotPrepared(failed) => vec![(MessageForm::Error, report(failed))],
        ClientEvent::Notice(notice) => vec![(MessageForm::Plain, notice.report(None))],
        ClientEvent::Unrecorded(why) => vec![(MessageForm::Error, why.clone())],
        ClientEvent::Debug(text) => vec![(MessageForm::Plain, text.clone())],
        ClientEvent::Trace { client, step } => vec![(MessageForm::Info, trace(*client, step, job, dialect))],
    }
}

/// The message about an error after which the client continues.
pub fn failure(place: CommandPlace, failed: &FailedStatement) -> String {
    let CommandPlace { client, script, command } = place;
    format!("client {client} got an error in command {command} (SQL) of script {script}; {}", report(failed))
}

fn report(failed: &FailedStatement) -> String {
    failed.error.report(failed.text.as_deref())
}

fn abort(place: CommandPlace, cause: &AbortCause, job: &Job) -> Vec<String> {
    let CommandPlace { client, script, command } = place;
    let kind = job.command_kind(script, command);
    let in_command = format!("client {client} aborted in command {command} ({kind}) of script {script}");
    let in_query = |query: u32, text: &str| {
        format!("client {client} script {script} aborted in command {command} query {query}: {text}")
    };
    match cause {
        AbortCause::Server(failed) => vec![in_query(failed.query, &report(failed))],
        AbortCause::Evaluation(why) => {
            // About an empty text, such as the result of \gset for NULL, pgbench says only that it
            // isn't a value.
            let silent = matches!(why, EvalError::MalformedVariable { text, .. } if text.is_empty());
            let why = (!silent).then(|| why.to_string());
            why.into_iter().chain([format!("{in_command}; evaluation of meta-command failed")]).collect()
        }
        AbortCause::Execution(why) => {
            vec![why.clone(), format!("{in_command}; execution of meta-command failed")]
        }
        AbortCause::Assignment(why) => {
            vec![why.clone(), format!("{in_command}; assignment of meta-command failed")]
        }
        AbortCause::NotAllowed(why) => vec![format!("{in_command}; {why}")],
        AbortCause::Result { query, problem, name } => {
            let name = name.as_ref().map(|name| format!("{kind}: invalid variable name: \"{name}\""));
            let last = format!("client {client} script {script} command {command} query {query}: {problem}");
            name.into_iter().chain([last]).collect()
        }
        AbortCause::Annotation(why) => {
            vec![why.clone(), format!("{in_command}; its line --@ doesn't fit its result")]
        }
        AbortCause::Unfinished(left) => {
            let what = match left {
                Unfinished::Block => "without completing the last transaction",
                Unfinished::Pipeline => "with pipeline open",
            };
            vec![format!("client {client} aborted: end of script reached {what}")]
        }
        AbortCause::Copy => vec!["COPY is not supported in pgbench, aborting".to_owned()],
        AbortCause::Connect(why) => {
            vec![why.clone(), format!("client {client} aborted while establishing connection")]
        }
        AbortCause::Lost(_, Some(last)) => vec![in_query(0, &last.report(None))],
        AbortCause::Lost(_, None) => {
            // pgbench says (SQL) for any command, such as \endpipeline.
            let at = format!("client {client} aborted in command {command} (SQL) of script {script}");
            vec![format!("{at}; perhaps the backend died while processing")]
        }
    }
}

fn trace(client: usize, step: &ClientStep, job: &Job, dialect: Dialect) -> String {
    let scripts = job.workload().mix.scripts();
    let what = match step {
        ClientStep::Script(script) => format!("executing script \"{}\"", scripts[*script].script.name),
        ClientStep::Command(script, command) => {
            format!("executing {}", command_text(&scripts[*script].script.commands[*command], job))
        }
        ClientStep::Preparing(name) => format!("preparing {name}"),
        ClientStep::Sending(text) => format!("sending {text}"),
        ClientStep::ShellValue(script, command, value) => {
            let mut words = Vec::new();
            if let CommandKind::SetShell { args, .. } = &scripts[*script].script.commands[*command].kind {
                words = written(args, job);
            }
            let word = |index: usize| words.get(index).map_or("(null)", String::as_str);
            return format!("{}: shell parameter name: \"{}\", value: \"{value}\"", word(0), word(1));
        }
        ClientStep::Receiving => "receiving".to_owned(),
        ClientStep::EndingPipeline(syncs) if dialect.syncpipeline => {
            format!("pipeline ending, ongoing syncs: {syncs}")
        }
        ClientStep::EndingPipeline(_) => "pipeline ending".to_owned(),
    };
    format!("client {client} {what}")
}

/// A meta-command with its arguments, but without its expression.
fn command_text(command: &Command, job: &Job) -> String {
    let symbols = &job.workload().symbols;
    let mut words = vec![format!("\\{}", command.kind.name())];
    match &command.kind {
        CommandKind::Shell { args } => words.extend(written(args, job)),
        CommandKind::SetShell { slot, args } => {
            words.push(symbols.name(*slot).to_owned());
            words.extend(written(args, job));
        }
        CommandKind::Set { slot, .. } => words.push(symbols.name(*slot).to_owned()),
        CommandKind::Sleep { .. } => words.extend(sleep_arguments(&command.text)),
        _ => {}
    }
    words.join(" ")
}

/// Arguments as written.
fn written(args: &[Argument], job: &Job) -> Vec<String> {
    let symbols = &job.workload().symbols;
    let word = |argument: &Argument| match argument {
        Argument::Literal(text) => text.clone(),
        Argument::Variable(slot) => format!(":{}", symbols.name(*slot)),
    };
    args.iter().map(word).collect()
}

/// The words after `\sleep` as written. A unit attached to its number is repeated as a further
/// word, as in pgbench.
fn sleep_arguments(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.split_ascii_whitespace().skip(1).map(str::to_owned).collect();
    if let [number] = &words[..]
        && !number.starts_with(':')
    {
        let unit = number.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic()).to_owned();
        words.extend(Some(unit).filter(|unit| !unit.is_empty()));
    }
    words
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use isobench_pgwire::{ServerError, SqlState};
    use isobench_script::{Mix, Symbols, Variables, Weighted, parse};

    use super::*;
    use crate::program::{ErrorClass, RunWorkload};
    use crate::retry::RetryPolicy;
    use crate::spec::RunSpec;

    // The expected messages are those of pgbench 18, and of 15 where it differs.

    /// Commands: 0 `\set`, 1 SQL, 2 `\gset`, 3 `\sleep`, 4 `\startpipeline`, 5 `\shell`.
    const SCRIPT: &str = "\\set x :nope + 1
SELECT * FROM nope;
SELECT 1 \\gset
\\sleep :n us
\\startpipeline
\\shell false
";

    fn job_of(script: &str, tries: Option<u32>) -> Job {
        let mut symbols = Symbols::new();
        let script = parse("test.sql", script, &mut symbols).expect("a script");
        let mix = Mix::new(vec![Weighted { script, weight: 1 }]).expect("a mix");
        let variables = Variables::new(&symbols);
        let retry = RetryPolicy { max_tries: tries.and_then(NonZeroU32::new), ..RetryPolicy::NEVER };
        let spec = RunSpec { retry, ..RunSpec::default() };
        Job::new(spec, RunWorkload { mix, symbols, variables }, Box::new(|_| ErrorClass::Other))
    }

    fn texts(event: &ClientEvent) -> Vec<(MessageForm, String)> {
        messages(event, &job_of(SCRIPT, Some(2)), Dialect::default())
    }

    /// The messages when the third client ends at a command.
    fn aborted(command: usize, cause: AbortCause) -> Vec<String> {
        let place = CommandPlace { client: 2, script: 0, command };
        let said = texts(&ClientEvent::Aborted(place, cause));
        assert!(said.iter().all(|(kind, _)| *kind == MessageForm::Error));
        said.into_iter().map(|(_, text)| text).collect()
    }

    fn failed(position: Option<u32>, query: u32, text: Option<&str>) -> FailedStatement {
        let error = ServerError {
            position,
            ..ServerError::new(SqlState::UNDEFINED_TABLE, "relation \"nope\" does not exist")
        };
        FailedStatement { error: Box::new(error), query, text: text.map(str::to_owned) }
    }

    /// Ends of clients with one message.
    #[test]
    fn the_end_of_a_client_has_its_words() {
        for (command, cause, expected) in [
            (
                4,
                AbortCause::NotAllowed("cannot use pipeline mode with the simple query protocol".to_owned()),
                "client 2 aborted in command 4 (startpipeline) of script 0; cannot use pipeline \
                 mode with the simple query protocol",
            ),
            (
                2,
                AbortCause::Result { query: 1, problem: "expected one row, got 0".to_owned(), name: None },
                "client 2 script 0 command 2 query 1: expected one row, got 0",
            ),
            (
                6,
                AbortCause::Unfinished(Unfinished::Block),
                "client 2 aborted: end of script reached without completing the last transaction",
            ),
            (
                6,
                AbortCause::Unfinished(Unfinished::Pipeline),
                "client 2 aborted: end of script reached with pipeline open",
            ),
            (1, AbortCause::Copy, "COPY is not supported in pgbench, aborting"),
            (
                4,
                AbortCause::Lost("the connection was lost".to_owned(), None),
                "client 2 aborted in command 4 (SQL) of script 0; perhaps the backend died while processing",
            ),
        ] {
            assert_eq!(aborted(command, cause), [expected]);
        }
    }

    #[test]
    fn an_error_of_the_server_shows_its_place_in_what_was_sent() {
        assert_eq!(
            aborted(1, AbortCause::Server(failed(Some(15), 0, Some("SELECT * FROM nope;")))),
            ["client 2 script 0 aborted in command 1 query 0: ERROR:  relation \"nope\" does not exist\n\
              LINE 1: SELECT * FROM nope;\n                      ^"]
        );
        assert_eq!(
            aborted(1, AbortCause::Server(failed(None, 3, None))),
            ["client 2 script 0 aborted in command 1 query 3: ERROR:  relation \"nope\" does not exist"]
        );
        let last = ServerError {
            severity: "FATAL".to_owned(),
            ..ServerError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            )
        };
        assert_eq!(
            aborted(1, AbortCause::Lost("the connection was lost".to_owned(), Some(Box::new(last)))),
            ["client 2 script 0 aborted in command 1 query 0: FATAL:  terminating connection due \
              to administrator command"]
        );
    }

    #[test]
    fn what_is_wrong_comes_before_the_end_of_the_client() {
        let undefined = EvalError::UndefinedVariable { name: "nope".to_owned() };
        for (command, cause, first, last) in [
            (
                0,
                AbortCause::Evaluation(undefined),
                "undefined variable \"nope\"",
                "client 2 aborted in command 0 (set) of script 0; evaluation of meta-command failed",
            ),
            (
                0,
                AbortCause::Assignment("set: invalid variable name: \"a-b\"".to_owned()),
                "set: invalid variable name: \"a-b\"",
                "client 2 aborted in command 0 (set) of script 0; assignment of meta-command failed",
            ),
            (
                5,
                AbortCause::Execution("false: could not launch shell command".to_owned()),
                "false: could not launch shell command",
                "client 2 aborted in command 5 (shell) of script 0; execution of meta-command failed",
            ),
            (
                2,
                AbortCause::Result {
                    query: 0,
                    problem: "error storing into variable ?column?".to_owned(),
                    name: Some("?column?".to_owned()),
                },
                "gset: invalid variable name: \"?column?\"",
                "client 2 script 0 command 2 query 0: error storing into variable ?column?",
            ),
            (
                0,
                AbortCause::Connect("connection to server failed".to_owned()),
                "connection to server failed",
                "client 2 aborted while establishing connection",
            ),
        ] {
            assert_eq!(aborted(command, cause), [first, last]);
        }
        // For an empty text there is only the message that it can't be evaluated.
        let empty = EvalError::MalformedVariable { name: "n".to_owned(), text: String::new() };
        assert_eq!(aborted(0, AbortCause::Evaluation(empty)).len(), 1);
    }

    #[test]
    fn failed_attempts_and_what_follows_them() {
        let place = CommandPlace { client: 2, script: 0, command: 1 };
        let expected =
            "client 2 got an error in command 1 (SQL) of script 0; ERROR:  relation \"nope\" does not exist";
        let event = ClientEvent::Failed(place, failed(None, 0, None));
        assert_eq!(texts(&event), [(MessageForm::Info, expected.to_owned())]);
        assert_eq!(texts(&ClientEvent::Abandoned(place, failed(None, 0, None))), []);
        for (tries, retry, used, expected) in [
            (
                Some(2),
                true,
                Some(0.005_94),
                "repeats the transaction after the error (try 1/2, 0.594% of the maximum time of tries was used)",
            ),
            (
                None,
                false,
                Some(2.661),
                "ends the failed transaction (try 1, 266.100% of the maximum time of tries was used)",
            ),
            (Some(7), false, None, "ends the failed transaction (try 1/7)"),
            (None, true, None, "repeats the transaction after the error (try 1)"),
        ] {
            let event = ClientEvent::Follows { client: 2, retry, tries: 1, used };
            let said = messages(&event, &job_of(SCRIPT, tries), Dialect::default());
            assert_eq!(said, [(MessageForm::Info, format!("client 2 {expected}"))]);
        }
    }

    #[test]
    fn notices_and_debug_lines_stand_alone_and_a_failed_preparation_is_an_error() {
        let notice = ServerError {
            severity: "NOTICE".to_owned(),
            detail: Some("more".to_owned()),
            ..ServerError::new(SqlState(*b"00000"), "hello")
        };
        let said = texts(&ClientEvent::Notice(Box::new(notice)));
        assert_eq!(said, [(MessageForm::Plain, "NOTICE:  hello\nDETAIL:  more".to_owned())]);
        let debug = "debug(script=0,command=1): int 1".to_owned();
        assert_eq!(texts(&ClientEvent::Debug(debug.clone())), [(MessageForm::Plain, debug)]);
        let event = ClientEvent::NotPrepared(failed(Some(15), 0, Some("SELECT * FROM nope;")));
        let expected =
            "ERROR:  relation \"nope\" does not exist\nLINE 1: SELECT * FROM nope;\n                      ^";
        assert_eq!(texts(&event), [(MessageForm::Error, expected.to_owned())]);
    }

    /// The message of `--debug` for a step.
    fn traced(script: &str, step: ClientStep, dialect: Dialect) -> String {
        let said = messages(&ClientEvent::Trace { client: 2, step }, &job_of(script, None), dialect);
        let [(MessageForm::Info, text)] = &said[..] else { panic!("{said:?}") };
        text.clone()
    }

    #[test]
    fn steps_have_their_words() {
        for (step, expected) in [
            (ClientStep::Script(0), "client 2 executing script \"test.sql\""),
            (ClientStep::Preparing("P_0".to_owned()), "client 2 preparing P_0"),
            (ClientStep::Sending("SELECT 1;".to_owned()), "client 2 sending SELECT 1;"),
            (ClientStep::Receiving, "client 2 receiving"),
            (ClientStep::EndingPipeline(2), "client 2 pipeline ending, ongoing syncs: 2"),
        ] {
            assert_eq!(traced(SCRIPT, step, Dialect::default()), expected);
        }
        let value =
            |script: &str| traced(script, ClientStep::ShellValue(0, 0, "3\n".to_owned()), Dialect::default());
        assert_eq!(value("\\setshell x echo :n"), "echo: shell parameter name: \":n\", value: \"3\n\"");
        assert_eq!(value("\\setshell x pwd"), "pwd: shell parameter name: \"(null)\", value: \"3\n\"");
        // 15 and 16 have no \syncpipeline, and don't count.
        let old = Dialect { syncpipeline: false, ..Dialect::default() };
        assert_eq!(traced(SCRIPT, ClientStep::EndingPipeline(1), old), "client 2 pipeline ending");
    }

    #[test]
    fn commands_are_traced_as_they_are_written_but_for_expressions() {
        for (line, reported) in [
            ("\\set  w   3 +  4", "\\set w"),
            ("\\sleep :n us", "\\sleep :n us"),
            ("\\sleep 2", "\\sleep 2"),
            ("\\sleep 1  s ", "\\sleep 1 s"),
            ("\\sleep 1 US", "\\sleep 1 US"),
            // pgbench really repeats the unit.
            ("\\sleep 2ms", "\\sleep 2ms ms"),
            ("\\shell  true  :n", "\\shell true :n"),
            ("\\setshell  q   echo  7 :n", "\\setshell q echo 7 :n"),
            ("\\if :n = 3\n\\endif", "\\if"),
            ("\\startpipeline\n\\endpipeline", "\\startpipeline"),
        ] {
            let said = traced(&format!("{line}\n"), ClientStep::Command(0, 0), Dialect::default());
            assert_eq!(said, format!("client 2 executing {reported}"));
        }
    }
}
