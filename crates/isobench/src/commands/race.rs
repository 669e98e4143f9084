//! `isobench race`: two or three commands of an application against each other, statement by statement.
//!
//! Not here: schedules and verdicts (`isobench_race`), what is printed (`race/text.rs`).

mod copied;
mod junit;
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
    let commands = commands(&options.command)?;
    let schedule = options.schedule.as_ref().map(|text| Schedule::read(text, commands.len()));
    let schedule = schedule.transpose().map_err(Failure::setup)?;
    let conditions = Condition::list(&options.invariant)?;
    let control = Arc::new(Control::new());
    let place = Place::find(options, &control)?;
    let Way { listener, acceptor, environment, certificate: _certificate } =
        Way::open(options.listen.as_deref(), &place.server)?;
    let application = options.serve.clone().zip(options.ready.clone());
    let settings = Settings {
        admin: place.admin.clone(),
        commands,
        environment,
        levels: options.levels.clone(),
        budget: Duration::from_secs_f64(options.budget),
        schedule,
        ignored: options.ignore.clone(),
        size_limit: options.size_limit,
        conditions: conditions.iter().map(|one| (one.name().to_owned(), one.sql().to_owned())).collect(),
        application: application.map(|(command, ready)| Application { command, ready }),
        watch: Duration::from_secs_f64(options.watch),
        settle: options.settle.map(Duration::from_secs_f64),
        acceptor: Some(acceptor),
        ..Settings::new(place.server.clone())
    };
    let stopped = || control.urgency() > Urgency::None;
    let raced = isobench_race::race(&settings, listener, &stopped, &mut |event| say(&progress(&event)));
    let reported = report(options, &settings, &place, &raced);
    let closed = place.close();
    reported.and(closed).and(status(raced))
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
fn report(options: &RaceOptions, settings: &Settings, place: &Place, raced: &Raced) -> Outcome {
    for note in &raced.report.notes {
        say(&format!("note: {note}"));
    }
    let subject =
        text::Subject { report: &raced.report, database: &place.name, problem: raced.problem.as_ref() };
    let printed = if raced.report.levels.is_empty() {
        Ok(())
    } else {
        output::print_fit(&fit(&text::render(&subject, output::width())))
    };
    if let Some(path) = &options.json {
        output::save_fit(path, &fit(&in_json(&raced.report, raced.problem.as_ref())?))?;
    }
    if let Some(path) = &options.junit {
        let tests = junit::render(&raced.report, &settings.commands, raced.problem.as_ref())?;
        output::save_fit(path, &fit(&tests))?;
    }
    printed
}

fn in_json(report: &Report, problem: Option<&RaceError>) -> Outcome<String> {
    let unwritten = |error: serde_json::Error| Failure::Output(format!("--json: {error}"));
    let mut found = serde_json::json!({"format": FORMAT, "problem": problem.map(ToString::to_string)});
    if let (Some(found), serde_json::Value::Object(report)) =
        (found.as_object_mut(), serde_json::to_value(report).map_err(unwritten)?)
    {
        found.extend(report);
    }
    Ok(format!("{found:#}\n"))
}

/// A text without control characters, and without passwords of the command line. Of commands each word is
/// looked at alone: a request with an `=` isn't a connection string.
fn fit(text: &str) -> String {
    let words: Vec<String> = std::env::args().collect();
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
