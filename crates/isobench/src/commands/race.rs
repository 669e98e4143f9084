//! `isobench race`: two or three commands of an application against each other, statement by statement.
//!
//! Not here: schedules and verdicts (`isobench_race`), what is printed (`race/text.rs`).

mod copied;
mod pairs;
mod questions;
mod suspects;
mod text;
mod way;

use std::sync::Arc;
use std::time::Duration;

use isobench_comparison::{Condition, Failure, Outcome};
use isobench_pgwire::{Concealed, ConnectOptions, is_connection_string, visible};
use isobench_race::{
    Application, Event, LevelReport, MOST_COMMANDS, RaceError, Raced, Report, Schedule, Settings,
};
use isobench_runner::{Control, Urgency};

use self::copied::Copied;
use self::way::Way;
use crate::gates;
use crate::interrupt;
use crate::options::RaceOptions;
use crate::output::{self, say};
use crate::servers::named_server;

/// The form of what was found, in JSON.
const FORMAT: &str = "isobench/race";

/// The word between commands.
const AND: &str = "--and";

/// Runs the commands against each other, and prints what was found.
///
/// # Errors
/// Wrong options, no server; the commands couldn't be tried; they race.
pub fn race(options: &RaceOptions) -> Outcome {
    gates::check(&options.gates)?;
    if let Some(capture) = &options.capture {
        return suspects::suspects(options, capture);
    }
    let pairs = match &options.check {
        Some(path) => pairs::read(path)?,
        None => vec![commands(&options.command)?],
    };
    let schedule = options.schedule.as_ref().map(|text| Schedule::read(text, pairs[0].len()));
    let schedule = schedule.transpose().map_err(Failure::setup)?;
    let conditions = Condition::list(&options.invariant)?;
    let control = Arc::new(Control::new());
    let place = Place::find(options, &control)?;
    let encrypted = isobench_race::encrypts(&place.server);
    let stopped = || control.urgency() > Urgency::None;
    let mut tried: Vec<Tried> = Vec::new();
    for commands in pairs {
        if !tried.is_empty() && stopped() {
            break;
        }
        let Way { listener, acceptor, environment, certificate: _certificate } =
            Way::open(options.listen.as_deref(), &place.server, encrypted)?;
        let application = options.serve.clone().zip(options.ready.clone());
        let settings = Settings {
            admin: place.admin.clone(),
            commands: commands.clone(),
            environment,
            levels: options.levels.clone(),
            budget: Duration::from_secs_f64(options.budget),
            schedule: schedule.clone(),
            ignored: options.ignore.clone(),
            size_limit: options.size_limit,
            conditions: conditions.iter().map(|one| (one.name().to_owned(), one.sql().to_owned())).collect(),
            application: application.map(|(command, ready)| Application { command, ready }),
            watch: Duration::from_secs_f64(options.watch),
            settle: options.settle.map(Duration::from_secs_f64),
            acceptor: Some(acceptor),
            ..Settings::new(place.server.clone())
        };
        let raced = isobench_race::race(&settings, listener, &stopped, &mut |event| say(&progress(&event)));
        let lost = matches!(raced.problem, Some(RaceError::NotRestored { .. }));
        tried.push(Tried { commands, raced });
        // Another pair would begin with other rows.
        if lost {
            break;
        }
    }
    let reported = report(options, &place, &tried);
    let closed = place.close();
    reported.and(closed).and(outcome(tried, options.check.is_some()))
}

/// Commands, and what came of them.
struct Tried {
    commands: Vec<String>,
    raced: Raced,
}

/// The outcome of all: the gravest one. A race comes before commands that couldn't be tried.
fn outcome(tried: Vec<Tried>, several: bool) -> Outcome {
    let mut failures: Vec<Failure> = Vec::new();
    let number = tried.len();
    let named: Vec<String> = tried.iter().map(|one| fit(&one.commands.join(" | "), &tried)).collect();
    for (Tried { raced, .. }, name) in tried.into_iter().zip(named) {
        if let Err(failure) = status(raced) {
            if several {
                say(&format!("{name}: {failure}"));
            }
            failures.push(failure);
        }
    }
    let rank = |failure: &Failure| match failure {
        Failure::Broken(_) => 0,
        Failure::Incomplete(_) => 2,
        _ => 1,
    };
    let count = failures.len();
    let Some(gravest) = failures.into_iter().min_by_key(rank) else { return Ok(()) };
    Err(match gravest {
        Failure::Broken(_) if several => {
            Failure::Broken(format!("{count} of {number} pairs race or weren't tried"))
        }
        Failure::Incomplete(_) if several => {
            Failure::Incomplete(format!("{count} of {number} pairs weren't tried"))
        }
        other => other,
    })
}

/// The commands as lines of shell. One of several words is quoted; one alone is run twice.
fn commands(words: &[String]) -> Outcome<Vec<String>> {
    let line = |words: &[String]| match words {
        [line] => line.trim().to_owned(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    };
    let mut commands: Vec<String> = words.split(|word| word == AND).map(line).collect();
    if commands.iter().any(String::is_empty) {
        return Err(Failure::setup(format!("a command next to {AND} is empty")));
    }
    if let [command] = commands.as_slice() {
        commands.push(command.clone());
    }
    if commands.len() > MOST_COMMANDS {
        let number = commands.len();
        return Err(Failure::setup(format!("there are {number} commands; give one, two or three")));
    }
    Ok(commands)
}

/// A word as a shell reads it (POSIX: Shell Command Language, Quoting).
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The database, and the ways to it.
struct Place {
    server: ConnectOptions,
    admin: ConnectOptions,
    /// For people.
    name: String,
    copied: Option<Copied>,
}

impl Place {
    /// Finds the database that may be changed. From then on signals are watched.
    fn find(options: &RaceOptions, control: &Arc<Control>) -> Outcome<Self> {
        if let Some(source) = &options.copy_from {
            let connection = &options.connection;
            let named = [&connection.host, &connection.port, &connection.username, &connection.dbname];
            if named.iter().any(|option| option.is_some()) {
                return Err(Failure::setup(
                    "--copy-from names the database to copy, and the copy is on an embedded PostgreSQL; leave out \
                     -h, -p, -U and -d",
                ));
            }
            interrupt::watch(control)?;
            let copied = Copied::make(source, options.size_limit, &options.embedded, control)?;
            let (server, admin, name) = (copied.server(), copied.admin(), copied.name());
            return Ok(Self { server, admin, name, copied: Some(copied) });
        }
        if options.embedded.any() {
            return Err(Failure::setup(
                "--server-bin, --server-version and --server-setting belong to the embedded PostgreSQL, which only \
                 --copy-from uses",
            ));
        }
        let Some(server) = named_server(&options.connection, None)? else {
            return Err(Failure::setup(
                "race needs a database: a copy of the application's (--copy-from CONNINFO), or one that may be changed \
                 (-d DBNAME --on-this-database DBNAME)",
            ));
        };
        let name = &server.dbname;
        match &options.on_this_database {
            Some(given) if given == name => {}
            Some(given) => {
                return Err(Failure::setup(format!(
                    "--on-this-database {given}: the connection options lead to database \"{name}\""
                )));
            }
            None => {
                return Err(Failure::setup(format!(
                    "race changes rows of the database and puts them back; use a copy (--copy-from 'dbname={name}'), or \
                     agree to changes of \"{name}\" itself by --on-this-database {name}"
                )));
            }
        }
        interrupt::watch(control)?;
        Ok(Self { admin: server.clone(), name: name.clone(), server, copied: None })
    }

    fn close(self) -> Outcome {
        self.copied.map_or(Ok(()), Copied::close)
    }
}

/// A line on what happens.
fn progress(event: &Event) -> String {
    match event {
        Event::Starting => "starting the application".to_owned(),
        Event::Watching => "watching the application at rest".to_owned(),
        Event::Level(level) => format!("{level}: one command after the other, then schedules"),
        Event::Found { level, verdict, schedule } => {
            format!("{level}: {} in schedule {schedule}", verdict.name())
        }
    }
}

/// Prints and writes what was found.
fn report(options: &RaceOptions, place: &Place, tried: &[Tried]) -> Outcome {
    let mut printed = Ok(());
    for (number, Tried { commands, raced: Raced { report, problem } }) in tried.iter().enumerate() {
        for note in &report.notes {
            say(&format!("note: {note}"));
        }
        if report.levels.is_empty() {
            continue;
        }
        let apart = if number > 0 { "\n" } else { "" };
        // Of pairs that don't race a line is enough.
        let clean = problem.is_none() && report.levels.iter().all(is_clean);
        let text = if options.check.is_some() && clean {
            text::line(report, commands)
        } else {
            let subject = text::Subject { report, database: &place.name, problem: problem.as_ref() };
            text::render(&subject, output::width())
        };
        printed = printed.and(output::print_fit(&fit(&format!("{apart}{text}"), tried)));
    }
    if let Some(path) = &options.json {
        output::save_fit(path, &fit(&in_json(tried, options.check.is_some())?, tried))?;
    }
    gates::write_fit(&options.gates, "race", questions::of_commands(tried), &|text| fit(text, tried))?;
    printed
}

/// What was found, as JSON: of several pairs a list.
fn in_json(tried: &[Tried], several: bool) -> Outcome<String> {
    let unwritten = |error: serde_json::Error| Failure::Output(format!("--json: {error}"));
    let one = |Tried { raced: Raced { report, problem }, .. }: &Tried| -> Outcome<serde_json::Value> {
        let mut found = serde_json::json!({"problem": problem.as_ref().map(ToString::to_string)});
        if let (Some(found), serde_json::Value::Object(report)) =
            (found.as_object_mut(), serde_json::to_value(report).map_err(unwritten)?)
        {
            found.extend(report);
        }
        Ok(found)
    };
    let mut all = tried.iter().map(one).collect::<Outcome<Vec<serde_json::Value>>>()?;
    let mut found = match all.pop() {
        Some(only) if !several => only,
        last => serde_json::json!({"pairs": all.into_iter().chain(last).collect::<Vec<_>>()}),
    };
    found["format"] = serde_json::json!(FORMAT);
    Ok(format!("{found:#}\n"))
}

/// A text without control characters, and without passwords of the command line and of commands. Of commands
/// each word is looked at alone: a request with an `=` isn't a connection string.
fn fit(text: &str, tried: &[Tried]) -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if !words.iter().any(|word| word == "--") {
        words.push("--".to_owned());
    }
    words.extend(tried.iter().flat_map(|one| &one.commands).cloned());
    let parts = secret_words(&words);
    Concealed::among(parts).hide(&visible(text)).into_owned()
}

/// The words of a command line that may hold a password.
fn secret_words(words: &[String]) -> Vec<&str> {
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (options, commands) = words.split_at(options);
    let plain_url = |word: &str| {
        let word = word.trim_start_matches(['\'', '"']);
        let rest = word.strip_prefix("http://").or(word.strip_prefix("https://"));
        rest.is_some_and(|rest| !rest.contains('@'))
    };
    let of_options = options.iter().skip(1).flat_map(|word| match word.as_str() {
        line if line.contains(' ') && !is_connection_string(line) => line.split_whitespace().collect(),
        word => vec![word],
    });
    let of_commands = commands.iter().flat_map(|line| line.split_whitespace());
    of_options.chain(of_commands.filter(|word| !plain_url(word))).collect()
}

/// True if schedules at a level say that the commands don't race.
fn is_clean(level: &LevelReport) -> bool {
    let none = level.planned > 0 && level.tried == 0;
    !(level.races() || level.is_doubtful() || level.is_inconclusive() || none)
}

/// The level that decides: the application's own, or the first one.
fn deciding(report: &Report) -> Option<&LevelReport> {
    report.levels.iter().find(|level| level.own).or(report.levels.first())
}

/// The outcome, as an exit status.
fn status(raced: Raced) -> Outcome {
    let Raced { report, problem } = raced;
    let lost = matches!(problem, Some(RaceError::NotRestored { .. } | RaceError::Interrupted));
    // What a stronger level does is of no matter for a race at the application's own.
    if let Some(level) = report.levels.iter().find(|level| level.own && level.races()).filter(|_| !lost) {
        return Err(Failure::Broken(format!("the commands race at {}; see above", level.level)));
    }
    match problem {
        Some(error @ RaceError::NotRestored { .. }) => return Err(Failure::setup(error)),
        Some(error) if error.is_untried() => return Err(Failure::Incomplete(error.to_string())),
        Some(error) => return Err(Failure::setup(error)),
        None => {}
    }
    let Some(level) = deciding(&report) else { return Ok(()) };
    if level.races() {
        return Err(Failure::Broken(format!("the commands race at {}; see above", level.level)));
    }
    if level.is_doubtful() {
        return Err(Failure::Incomplete(format!(
            "a race at {} was seen once, and not again when its schedule was repeated; see above",
            level.level
        )));
    }
    if level.is_inconclusive() || (level.planned > 0 && level.tried == 0) {
        return Err(Failure::Incomplete(format!(
            "no schedule at {} says whether the commands race; see above",
            level.level
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Outcome<Vec<String>> {
        commands(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn requests_are_shown_and_passwords_are_not() {
        let line = [
            "isobench",
            "race",
            "--copy-from",
            "host=db password=hunter1",
            "--",
            "curl -X POST http://127.0.0.1:8000/order?item=1 -d number=1",
            "--and",
            "psql postgresql://ada:hunter2@db/shop -c 'SELECT 1'; PGPASSWORD=hunter3 psql",
        ];
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let hidden = Concealed::among(secret_words(&words));
        let shown = hidden.hide(&words.join(" ")).into_owned();
        assert!(shown.contains(line[5]) && !shown.contains("hunter"), "{shown}");
    }

    #[test]
    fn commands_are_separated_by_and() {
        assert_eq!(read(&["curl x"]).unwrap(), ["curl x", "curl x"]);
        assert_eq!(read(&["curl x", "--and", "sleep 1; curl y"]).unwrap(), ["curl x", "sleep 1; curl y"]);
        let tests = read(&["pytest", "a::one two", "--and", "pytest", "b's"]).unwrap();
        assert_eq!(tests, ["pytest 'a::one two'", r"pytest 'b'\''s'"]);
        for wrong in
            [vec!["--and", "x"], vec!["x", "--and"], vec!["a", "--and", "b", "--and", "c", "--and", "d"]]
        {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
    }
}
