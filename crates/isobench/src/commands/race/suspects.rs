//! `isobench race CAPTURE`: the pairs of recorded transactions that can race, by theory alone.
//!
//! Not here: how they are found, and what is printed (`isobench_suspects`).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use isobench_comparison::{Failure, Outcome, Setup};
use isobench_database::Asked;
use isobench_isolation::Level;
use isobench_pgwire::{ConnectOptions, Connection, Given, fit, process_environment};
use isobench_replay::Recorded;
use isobench_result::numbers::counted;
use isobench_runner::{Control, Urgency};
use isobench_script::{lexer, literal};
use isobench_sql::Catalog;
use isobench_suspects::{Accepted, Answer, History, Screen, Scripts, Unaccepted, Unknown, judge, render};

use super::copied::Copied;
use super::questions::of_capture;
use crate::commands::dump::dump_schema;
use crate::commands::scripts::recorded;
use crate::destination::{Kind, check_file};
use crate::gates;
use crate::interrupt;
use crate::options::RaceOptions;
use crate::output::{self, say};

/// Extensions that only watch a server, and without which a schema means the same.
const WATCHING: [&str; 9] = [
    "pg_stat_statements",
    "pg_buffercache",
    "pgstattuple",
    "pg_freespacemap",
    "pg_visibility",
    "pg_prewarm",
    "pg_stat_kcache",
    "pg_qualstats",
    "hypopg",
];

/// What was found.
struct Found {
    /// What isn't accepted.
    answer: Answer,
    /// All suspects, to be accepted.
    accepts: Accepted,
    /// What the file of `--check` says of the suspects.
    unaccepted: Option<Unaccepted>,
}

/// What the recorded database says of its sessions.
struct Sessions {
    /// The level of those that set none.
    level: Level,
    /// The search path.
    path: String,
}

/// Names the suspects of a capture.
///
/// # Errors
/// The capture or the schema can't be read, no server starts; there are suspects; nothing could be judged.
pub(super) fn suspects(options: &RaceOptions, capture: &Path) -> Outcome {
    if let Some(path) = &options.write {
        check_file("--write", path, Kind::Accepted)?;
    }
    let accepted = options.check.as_deref().map(read_accepted).transpose()?;
    let recorded = recorded(capture)?;
    let control = Arc::new(Control::new());
    interrupt::watch(&control)?;
    let stopped = || control.urgency() > Urgency::None;
    let (copied, sessions, mut doubts) = copy(options, &recorded, &control)?;
    let answered = answer(&recorded, &copied, &sessions, &mut doubts, accepted.as_ref(), &stopped);
    let closed = copied.close();
    let Found { answer, accepts, unaccepted } = answered?;
    closed?;
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&answer).map_err(Failure::setup)?;
        output::save(path, &(json + "\n"))?;
    }
    gates::write(&options.gates, "race", of_capture(&answer))?;
    let database = options.copy_from.as_deref().map(quoted);
    let screen =
        Screen { width: output::width().min(80), database: database.as_deref(), details: options.details };
    output::print(&render(&answer, screen))?;
    if let (Some(path), Some(unaccepted)) = (&options.check, &unaccepted) {
        output::print(&checked(path, unaccepted))?;
    }
    if stopped() {
        return Err(Failure::Incomplete("interrupted; not all pairs were looked at".to_owned()));
    }
    if answer.is_empty() {
        return Err(Failure::Incomplete("no recorded transaction could be judged; see above".to_owned()));
    }
    if let Some(path) = &options.write {
        output::save(path, &accepts.text())?;
        say(&format!("{} accepted in {}", counted(accepts.len() as u64, "pair"), path.display()));
    }
    if !answer.live.is_empty() {
        return Err(Failure::Broken("transactions of the capture have raced; see above".to_owned()));
    }
    if answer.suspects.is_empty() && answer.between.is_empty() {
        return Ok(());
    }
    Err(Failure::Broken("transactions of the capture can race; see above".to_owned()))
}

/// Reads the file of `--check`.
fn read_accepted(path: &Path) -> Outcome<Accepted> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::setup(format!("--check: {}: {error}", path.display()));
    let text = isobench_trust::read_to_string(path).map_err(|error| wrong(&error))?;
    Accepted::read(&text).map_err(|error| wrong(&error))
}

/// What the file of `--check` accepts, and what it doesn't.
fn checked(path: &Path, unaccepted: &Unaccepted) -> String {
    let (path, pairs) = (path.display(), counted(unaccepted.accepted as u64, "pair"));
    let mut lines = vec![String::new(), format!("  {pairs} more accepted in {path}")];
    if unaccepted.live > 0 {
        let times = counted(unaccepted.live as u64, "time");
        lines.push(format!("  They have raced {times} while this was recorded"));
    }
    if !unaccepted.kinds.is_empty() {
        lines.push(format!("  Not accepted in {path}:"));
    }
    let kind = |Unknown { does, line, why }: &Unknown| format!("    {does} (line {line}): {why}");
    lines.extend(unaccepted.kinds.iter().map(kind));
    lines.join("\n") + "\n"
}

/// A connection string as a shell reads it.
fn quoted(text: &str) -> String {
    let plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter));
    let text = fit(text);
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Makes the schema on an embedded server. Returns it, what sessions begin with, and why nothing can be proved.
fn copy(
    options: &RaceOptions,
    recorded: &Recorded,
    control: &Arc<Control>,
) -> Outcome<(Copied, Sessions, Vec<String>)> {
    let user = recorded.opened.iter().find_map(|opened| opened.parameters.get("user"));
    let user = user.map_or("", String::as_str);
    let mut doubts = Vec::new();
    if let Some(source) = &options.copy_from {
        let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("--copy-from: {error}"));
        let given = Given { dbname: Some(source.clone()), ..Given::default() };
        let original =
            ConnectOptions::resolve(&given, &process_environment).map_err(|error| wrong(&error))?;
        let sessions = of_sessions(&original, user)?;
        let text = dump_schema(source)?;
        let copied = Copied::empty(&original.dbname, &options.embedded, control)?;
        let refused = copied.make_schema(&text)?;
        let lacks = refused.iter().find(|(statement, _)| !only_watches(statement));
        for (statement, why) in &refused {
            say(&fit(&format!("note: the copy lacks something: {}: {why}", first_words(statement))));
        }
        if let Some((statement, _)) = lacks {
            doubts.push(format!("the copy lacks what {} makes", first_words(statement)));
        }
        return Ok((copied, sessions, doubts));
    }
    let Some(path) = &options.setup else {
        return Err(Failure::setup(
            "the tables of the capture are missing: copy the schema (--copy-from CONNINFO, read only), or give a file \
             that makes them (--setup FILE.sql)",
        ));
    };
    let setup = Setup::read("setup", path)?;
    let copied = Copied::empty("isobench_capture", &options.embedded, control)?;
    copied.run(&setup)?;
    say("note: sessions that set no level count as read committed, PostgreSQL's default");
    let path = "\"$user\", public".to_owned();
    Ok((copied, Sessions { level: Level::ReadCommitted, path }, doubts))
}

/// The beginning of a statement, for people.
fn first_words(statement: &str) -> String {
    lexer::words(statement).iter().take(6).map(|word| word.text).collect::<Vec<_>>().join(" ")
}

/// True for a statement that makes an extension which only watches.
fn only_watches(statement: &str) -> bool {
    let words = lexer::words(statement);
    let makes = words.first().is_some_and(|word| word.is("CREATE"))
        && words.get(1).is_some_and(|word| word.is("EXTENSION"));
    makes && words.iter().filter_map(lexer::Token::name).any(|name| WATCHING.contains(&name.as_str()))
}

/// Asks the recorded database what its sessions begin with; nothing of the capture is executed there.
fn of_sessions(original: &ConnectOptions, user: &str) -> Outcome<Sessions> {
    let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("--copy-from: {error}"));
    let mut connection = Connection::open(original).map_err(|error| wrong(&error))?;
    let mut setting = |name: &str| -> Outcome<String> {
        let own = format!(
            "SELECT pg_catalog.split_part(one, '=', 2) FROM pg_catalog.pg_db_role_setting s \
             LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole, pg_catalog.unnest(s.setconfig) AS one \
             WHERE one LIKE '{name}=%' AND (s.setrole = 0 OR r.rolname = {}) AND (s.setdatabase = 0 OR s.setdatabase = \
             (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())) \
             ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1",
            literal(user)
        );
        let found = connection.value(&own).map_err(|error| wrong(&error))?;
        let general = format!("SELECT reset_val FROM pg_catalog.pg_settings WHERE name = '{name}'");
        match found {
            Some(found) => Ok(found),
            None => Ok(connection.value(&general).map_err(|error| wrong(&error))?.unwrap_or_default()),
        }
    };
    let level = setting("default_transaction_isolation")?.parse().unwrap_or(Level::ReadCommitted);
    let path = setting("search_path")?;
    connection.close();
    Ok(Sessions { level, path })
}

/// The search paths that recorded sessions set, by start-up parameters or statements.
fn search_paths(recorded: &Recorded) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for opened in &recorded.opened {
        if let Some(path) = opened.parameters.get("search_path") {
            found.insert(path.clone());
        }
        let options = opened.parameters.get("options").map(|options| options.replace("\\ ", " "));
        if let Some((_, after)) = options.as_deref().and_then(|options| options.split_once("search_path=")) {
            found.insert(after.split(" -c").next().unwrap_or(after).trim().to_owned());
        }
    }
    for statement in &recorded.search_paths {
        let words = lexer::words(statement);
        let sets = words.first().is_some_and(|word| word.is("SET"));
        let to = words.iter().position(|word| word.is_any(&["TO", "="]) || !sets && word.is(","));
        let values = to.map_or(&[][..], |to| &words[to + 1..]);
        let end = values.iter().position(|word| !sets && word.is(",")).unwrap_or(values.len());
        let value = |word: &lexer::Token<'_>| word.value().unwrap_or_else(|| word.text.to_owned());
        found.insert(values[..end].iter().map(value).collect());
    }
    found
}

fn answer(
    recorded: &Recorded,
    copied: &Copied,
    sessions: &Sessions,
    doubts: &mut Vec<String>,
    accepted: Option<&Accepted>,
    stopped: &dyn Fn() -> bool,
) -> Outcome<Found> {
    let paths = search_paths(recorded);
    // A path that a statement sets isn't that of the statements before.
    let plain = |path: &str| path.replace([' ', '"'], "");
    let usual =
        recorded.search_paths.is_empty() || paths.iter().all(|path| plain(path) == plain(&sessions.path));
    let all = recorded.opened.iter().all(|opened| {
        let names =
            |(name, value): (&String, &String)| name == "search_path" || value.contains("search_path=");
        opened.parameters.iter().any(names)
    });
    if paths.len() > 1 || !usual || !paths.is_empty() && !all && recorded.search_paths.is_empty() {
        doubts.push("sessions of the capture have several search paths".to_owned());
    }
    if !recorded.unseen.is_empty() {
        doubts.push("not all that sessions sent was recorded".to_owned());
    }
    let user = recorded.opened.iter().find_map(|opened| opened.parameters.get("user"));
    let user = format!("\"{}\"", user.map_or("", String::as_str).replace('"', "\"\""));
    let path = paths.first().unwrap_or(&sessions.path).replace("\"$user\"", &user);
    let mut connection = Connection::open(&copied.server()).map_err(Failure::setup)?;
    let set = format!("SELECT pg_catalog.set_config('search_path', {}, false)", literal(&path));
    if connection.execute(&set).is_err() {
        doubts.push("the search path of its sessions isn't understood".to_owned());
    }
    let history = History::of(recorded, sessions.level);
    say(&format!("{} kinds of transactions", history.templates.len()));
    let mut query = |sql: &str| connection.query(sql).map(|rows| rows.rows);
    let mut catalog = Catalog::load(&mut query).map_err(Failure::setup)?;
    let scripts = Scripts::of(&history.templates, &catalog);
    catalog.read_statements(scripts.all(), &mut Asked(&mut connection)).map_err(Failure::setup)?;
    connection.close();
    let programs = scripts.programs(&catalog);
    let mut judged = judge(&history.templates, &programs, doubts.first().map(String::as_str), stopped);
    let mut carried = history.carried(&programs[0]);
    // Where a name may be another table, nothing is certain.
    let mut live = if doubts.is_empty() { history.live(&programs[0], stopped) } else { Vec::new() };
    let accepts = Accepted::of(&history.templates, &judged, &carried);
    let unaccepted =
        accepted.map(|accepted| accepted.take_out(&history.templates, &mut judged, &mut carried, &mut live));
    let answer = Answer::of(&history.templates, live, &judged, &carried, doubts.first().cloned());
    Ok(Found { answer, accepts, unaccepted })
}
