//! The files that are made of a capture: scripts, their tables, the plan, and a page that says what
//! they cover.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use isobench_isolation::Level;

use crate::constraints::Constraints;
use crate::dump::{DumpError, placeable, require_sql};
use crate::inference::{Inferred, Lineage, Rule, infer};
use crate::past::Past;
use crate::script::{Keys, Script, fill, write};
use crate::sessions::{Executed, Recorded, Transaction};
use crate::template::{Scope, Template, Templates, alike, statements, writes};

/// The first line of the SQL that makes the tables.
const SETUP: &str =
    "--@ recorded: on a server of isobench's own, this is executed without a superuser's rights\n";

/// Where the tables of the scripts come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tables {
    /// SQL of the user's.
    Setup(String),
    /// A dump of the database.
    Dump(String),
    /// What the capture itself has of the schema.
    Captured,
}

/// What is made of a capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// What becomes a script.
    pub scope: Scope,
    /// How much of the transactions the scripts are to cover, in percent.
    pub coverage: f64,
    /// True to pause within transactions as long as the application did.
    pub pauses: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { scope: Scope::default(), coverage: 96.0, pauses: false }
    }
}

/// Why no folder is made of a capture.
#[derive(Debug, thiserror::Error)]
pub enum Unmade {
    /// It has no transactions.
    #[error("the capture has no transaction that was finished")]
    Empty,
    /// No template can become a script.
    #[error("none of the transactions can become a script: {0}")]
    Nothing(String),
    /// There are no tables.
    #[error(
        "the capture doesn't show how its tables are made. Three ways: --copy-from CONNINFO takes schema and rows of the \
         database, read only; --setup FILE.sql takes them from a file, such as pg_dump --inserts --no-owner \
         --no-privileges writes; or record the migrations, too"
    )]
    NoTables,
    /// The dump can't be used.
    #[error(transparent)]
    Dump(#[from] DumpError),
}

/// The files made of a capture.
#[derive(Debug)]
pub struct Folder {
    /// Their names and texts.
    pub files: Vec<(String, String)>,
    /// What to say of them, a line each.
    pub summary: Vec<String>,
    /// What a replay is compared with.
    pub expected: Expected,
    /// What takes a copy back to where transactions found it.
    pub past: Past,
    /// SQL that makes the tables, and sequences of new keys.
    tables: String,
}

/// What was recorded, as far as a replay of the scripts should give the same.
#[derive(Debug)]
pub struct Expected {
    /// The most transactions that were open at the same time.
    pub sessions: usize,
    /// The level at which most transactions ran; `None` is the server's default.
    pub level: Option<Level>,
    /// The share of transactions that failed by 40001 or 40P01.
    pub conflicts: f64,
    /// The scripts.
    pub scripts: Vec<ExpectedScript>,
}

/// What was recorded of a template.
#[derive(Debug)]
pub struct ExpectedScript {
    /// The name of its file.
    pub name: String,
    /// The number of its instances.
    pub count: u64,
    /// The mean number of rows of each statement, and the share of executions with none; `None` if the
    /// record has no results, as that from a server's log.
    pub rows: Vec<Option<(f64, f64)>>,
    /// True if it writes.
    pub writes: bool,
    /// SQL that makes the table of its inputs; empty if it has none.
    pub inputs: String,
    /// The instances whose inputs it draws, in order; one if it has none.
    pub instances: Vec<Instance>,
}

/// A recorded instance of a script.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The numbers of its transactions in the record.
    pub transactions: Vec<usize>,
    /// For each statement, whether it found rows; `None` if that isn't recorded.
    pub found: Vec<Option<bool>>,
    /// Its inputs, as SQL.
    values: String,
}

/// A template that became a script.
struct Made<'a, 't> {
    template: &'a Template<'t>,
    script: Script,
}

impl Folder {
    /// Makes the files of what was recorded.
    ///
    /// # Errors
    /// There is nothing to make scripts of, or there are no tables for them.
    pub fn of(recorded: &Recorded, options: Options, tables: &Tables) -> Result<Folder, Unmade> {
        let templates = Templates::of(recorded, options.scope, options.coverage);
        if templates.total == 0 {
            return Err(Unmade::Empty);
        }
        let setup = setup(recorded, tables)?;
        let lineage = Lineage::of(recorded, Constraints::of(&setup));
        let mut keys = Keys::default();
        let (mut made, mut refused) = (Vec::new(), Vec::new());
        for template in &templates.kept {
            let inferred = infer(template, &lineage, &recorded.header.began);
            match write(template, made.len() + 1, &inferred, &lineage, options.pauses, &mut keys) {
                Ok(script) => made.push(Made { template, script }),
                Err(why) => {
                    let count = plural(template.count, "transaction", "transactions");
                    refused.push(format!("{}: {why} ({count})", template.name));
                }
            }
        }
        if made.is_empty() {
            return Err(Unmade::Nothing(refused.join("; ")));
        }
        let summary = summary(recorded, &templates, &made, &refused);
        let mut files: Vec<(String, String)> =
            made.iter().map(|one| (format!("{}.sql", one.template.name), one.script.text.clone())).collect();
        files.push(("setup.sql".to_owned(), String::new()));
        files.push(("workload.toml".to_owned(), plan(&made)));
        files.push(("README.md".to_owned(), readme(&templates, &made, &summary)));
        let expected = Expected::of(recorded, &templates, &made);
        let past = Past::of(recorded, &lineage, &alike(&recorded.transactions));
        let tables = format!("{setup}{}", keys.sql());
        let mut folder = Folder { files, summary, expected, past, tables };
        folder.fill(&[]);
        Ok(folder)
    }

    /// Writes the SQL of the tables, with what takes them back, and with the inputs of the instances.
    fn fill(&mut self, back: &[String]) {
        let mut setup = SETUP.to_owned() + &self.tables;
        if !back.is_empty() {
            setup.push_str("-- Back to where recorded transactions found their rows.\n");
            for sql in back.iter().filter(|sql| require_sql(&format!("{sql};")) == Ok(1)) {
                setup.extend([sql, ";\n"]);
            }
        }
        for (number, script) in self.expected.scripts.iter().enumerate() {
            if !script.inputs.is_empty() {
                setup.push_str(&script.inputs);
                setup.push_str(&fill(number + 1, script.instances.iter().map(|one| one.values.as_str())));
            }
        }
        setup.push_str("ANALYZE;\n");
        if let Some((_, text)) = self.files.iter_mut().find(|(name, _)| name == "setup.sql") {
            *text = setup;
        }
    }

    /// Leaves a script out of the plan.
    pub fn leave_out(&mut self, name: &str) {
        let line = format!("  \"{name}@");
        if let Some((_, plan)) = self.files.iter_mut().find(|(name, _)| name == "workload.toml") {
            *plan = plan.split_inclusive('\n').filter(|one| !one.starts_with(&line)).collect();
        }
    }

    /// Takes the tables back by these statements, and draws the inputs of these instances only; `kept` has
    /// their places for each script.
    pub fn put_back(&mut self, back: &[String], kept: &[Vec<usize>]) {
        for (number, (script, kept)) in self.expected.scripts.iter_mut().zip(kept).enumerate() {
            let drawn = |count: usize| format!("\\set i_row random(1, {count})\n");
            let before = drawn(script.instances.len());
            script.instances =
                kept.iter().filter_map(|place| script.instances.get(*place)).cloned().collect();
            let text = &mut self.files[number].1;
            *text = text.replacen(&before, &drawn(script.instances.len()), 1);
        }
        self.fill(back);
    }
}

impl Expected {
    fn of(recorded: &Recorded, templates: &Templates<'_>, made: &[Made<'_, '_>]) -> Expected {
        let spans: Vec<(u64, u64)> = recorded.transactions.iter().map(|one| (one.at, one.until)).collect();
        // As many as were open when one of them began.
        let open = |at: u64| spans.iter().filter(|(from, until)| *from <= at && at <= *until).count();
        let step = spans.len().div_ceil(2_000).max(1);
        let sessions = spans.iter().step_by(step).map(|(from, _)| open(*from)).max().unwrap_or(1);
        let level = templates.levels.iter().max_by_key(|(_, count)| **count).and_then(|(level, _)| *level);
        let conflicts: u64 = templates.conflicts.values().map(|conflicts| conflicts.failed).sum();
        let numbers: HashMap<*const Transaction, usize> = recorded
            .transactions
            .iter()
            .enumerate()
            .map(|(number, one)| (std::ptr::from_ref(one), number))
            .collect();
        let instance = |template: &Template<'_>, (place, values): &(usize, String)| {
            let unit = &template.instances[*place];
            Instance {
                transactions: unit
                    .iter()
                    .filter_map(|one| numbers.get(&std::ptr::from_ref(*one)).copied())
                    .collect(),
                found: statements(unit).map(|executed| rows_of(executed).map(|rows| rows > 0)).collect(),
                values: values.clone(),
            }
        };
        let scripts = made.iter().map(|one| ExpectedScript {
            name: format!("{}.sql", one.template.name),
            count: one.template.count,
            rows: rows(one.template),
            writes: writes(&one.template.instances[0]),
            inputs: one.script.inputs.clone(),
            instances: one.script.rows.iter().map(|row| instance(one.template, row)).collect(),
        });
        Expected {
            sessions: sessions.max(1),
            level,
            conflicts: conflicts as f64 / recorded.transactions.len().max(1) as f64,
            scripts: scripts.collect(),
        }
    }
}

/// The number of rows that a statement returned or changed; `None` if that isn't recorded.
fn rows_of(executed: &Executed) -> Option<u64> {
    let answer = &executed.answer;
    let of_tag = |tag: &str| tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    if answer.columns.is_some() { Some(answer.rows) } else { answer.tag.as_deref().map(of_tag) }
}

/// The mean number of rows of each statement, and the share of executions with none.
fn rows(template: &Template<'_>) -> Vec<Option<(f64, f64)>> {
    let mut sums: Vec<(u64, u64, u64)> = Vec::new();
    for unit in &template.instances {
        for (number, executed) in statements(unit).enumerate() {
            if sums.len() <= number {
                sums.push((0, 0, 0));
            }
            let (count, sum, empty) = &mut sums[number];
            if let Some(rows) = rows_of(executed) {
                *count += 1;
                *sum += rows;
                *empty += u64::from(rows == 0);
            }
        }
    }
    let means = |(count, sum, empty): (u64, u64, u64)| {
        let share = |of: u64| of as f64 / count as f64;
        (count > 0).then(|| (share(sum), share(empty)))
    };
    sums.into_iter().map(means).collect()
}

/// SQL that makes the application's tables.
fn setup(recorded: &Recorded, tables: &Tables) -> Result<String, Unmade> {
    match tables {
        Tables::Setup(text) if text.contains("public.") || text.contains("search_path") => {
            Ok(placeable(text)?)
        }
        Tables::Setup(text) => {
            let text = format!("{}\n", text.trim_end());
            let ended = format!("{text};\n");
            // The last statement may lack its semicolon.
            let text = if require_sql(&text).is_err() && require_sql(&ended).is_ok() { ended } else { text };
            require_sql(&text).map(|_| text).map_err(Unmade::from)
        }
        Tables::Dump(text) => Ok(placeable(text)?),
        Tables::Captured => {
            let all = recorded.schema.join(";\n");
            let placed = placeable(&all)?;
            let makes = isobench_script::lexer::words(&placed)
                .windows(2)
                .any(|pair| pair[0].is("CREATE") && pair[1].is("TABLE"));
            if makes { Ok(placed) } else { Err(Unmade::NoTables) }
        }
    }
}

fn percent(part: u64, of: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64)
}

fn plural(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn level_name(level: Option<Level>) -> &'static str {
    level.map_or("the server's default level", Level::name)
}

/// What to say of a capture and its scripts.
fn summary(
    recorded: &Recorded,
    templates: &Templates<'_>,
    made: &[Made<'_, '_>],
    refused: &[String],
) -> Vec<String> {
    let covered: u64 = made.iter().map(|one| one.template.count).sum();
    let mut lines = vec![format!(
        "{} {} {} of {}.",
        plural(made.len() as u64, "template", "templates"),
        if made.len() == 1 { "is" } else { "are" },
        percent(covered, templates.total),
        plural(templates.total, "transaction", "transactions"),
    )];
    if !templates.rare.is_empty() {
        let count: u64 = templates.rare.iter().map(|template| template.count).sum();
        let names: Vec<&str> = templates.rare.iter().take(5).map(|template| template.name.as_str()).collect();
        lines.push(format!(
            "Left out as rare: {} ({}), such as {}.",
            plural(templates.rare.len() as u64, "template", "templates"),
            percent(count, templates.total),
            names.join(", ")
        ));
    }
    lines.extend(refused.iter().map(|why| format!("Left out: {why}.")));
    let failed = templates.failed.iter().map(|(how, count)| {
        format!("Left out: {} that {how}.", plural(*count, "transaction", "transactions"))
            .replace("that unfinished", "left unfinished")
    });
    lines.extend(failed);
    if !recorded.left_out.is_empty() {
        let parts: Vec<String> =
            recorded.left_out.iter().map(|(what, count)| format!("{count} {what}")).collect();
        lines.push(format!("Left out of {} statements: {}.", recorded.statements, parts.join(", ")));
    }
    for (level, conflicts) in &templates.conflicts {
        let all = templates.levels.get(level).copied().unwrap_or_default();
        let gave_up = conflicts.failed - conflicts.retried;
        let then = match (conflicts.retried, gave_up) {
            (0, _) => "it retried none of them".to_owned(),
            (_, 0) => "it retried them all".to_owned(),
            (retried, gave_up) => format!("it retried {retried}, and gave up {gave_up}"),
        };
        lines.push(format!(
            "At {} the application met conflicts in {} of {}; {then}.",
            level_name(*level),
            conflicts.failed,
            plural(all, "transaction", "transactions")
        ));
    }
    let inputs = || made.iter().flat_map(|one| &one.script.rules);
    let computed = inputs().filter(|(_, one)| matches!(one.rule, Rule::Sum { ambiguous: false, .. }));
    let computed: BTreeSet<&str> = computed.map(|(name, _)| name.as_str()).collect();
    if !computed.is_empty() {
        lines.push(format!(
            "The application reads, computes and writes back: {}. Two at once lose one of such changes where the level \
             doesn't prevent it.",
            computed.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    let elsewhere: BTreeSet<&str> =
        inputs().filter(|(_, one)| one.computed).map(|(name, _)| name.as_str()).collect();
    if !elsewhere.is_empty() {
        lines.push(format!(
            "The application reads, changes and writes back in a way that isn't known: {}. That trying shows nothing \
             wrong proves nothing for these.",
            elsewhere.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    let guessed =
        inputs().filter(|(_, one)| matches!(one.rule, Rule::Sum { ambiguous: true, .. })).count() as u64;
    if guessed > 0 {
        lines.push(format!(
            "{} always changed in the same way, so that it could also be a constant: see README.md.",
            plural(guessed, "column", "columns")
        ));
    }
    if made.iter().any(|one| one.script.hashed) {
        lines.push(
            "The capture is redacted: hashes stand for its texts, so conditions on them find no rows in a copy."
                .to_owned(),
        );
    }
    if !recorded.whole {
        lines.push("The capture breaks off; it was read up to there.".to_owned());
    }
    let mut unseen = recorded.unseen.clone();
    unseen.sort();
    unseen.dedup();
    lines.extend(unseen.into_iter().take(5).map(|what| format!("Not recorded: {what}.")));
    lines
}

fn plan(made: &[Made<'_, '_>]) -> String {
    let files = made.iter().map(|one| format!("  \"{}.sql@{}\"", one.template.name, one.template.count));
    let files = files.collect::<Vec<_>>().join(",\n");
    format!(
        "# isobench compare --plan workload.toml; isobench advise --plan workload.toml\nfile = [\n{files},\n]\nsetup = \
         \"setup.sql\"\n# Values are sent as parameters: texts and times need no quotation marks.\nprotocol = \
         \"prepared\"\n"
    )
}

fn readme(templates: &Templates<'_>, made: &[Made<'_, '_>], summary: &[String]) -> String {
    let mut text = String::from("# Scripts of a recorded application\n\n");
    for line in summary {
        let _ = writeln!(text, "- {line}");
    }
    text.push_str("\n## What to do with them\n\n```\nisobench compare --plan workload.toml\nisobench advise --plan workload.toml\n```\n\n");
    let files: Vec<String> =
        made.iter().map(|one| format!("-f {}.sql@{}", one.template.name, one.template.count)).collect();
    let _ = writeln!(
        text,
        "The same, written out:\n\n```\nisobench compare --protocol prepared {} --setup setup.sql\n```\n",
        files.join(" ")
    );
    text.push_str(
        "The level isn't part of the scripts: `compare` and `advise` vary it. All files are yours to edit; \
         `setup.sql`\nmakes the tables, and `isobench_inputs_N` in it has the recorded values.\nStatements that the application sent outside of a block are in one here, so that each can have a level of its own.\n\n## Scripts\n\n| script \
         | seen | share | at |\n|---|---|---|---|\n",
    );
    for one in made {
        let levels: Vec<&str> = one.template.levels.keys().map(|level| level_name(*level)).collect();
        let _ = writeln!(
            text,
            "| `{}.sql` | {} | {} | {} |",
            one.template.name,
            one.template.count,
            percent(one.template.count, templates.total),
            levels.join(", ")
        );
    }
    text.push_str(
        "\n## Where values come from\n\nA rule was found in four fifths of the instances, and held in at least 95 % of \
         the others (*held*); inputs are\nrecorded values, drawn anew.\n",
    );
    for one in made {
        let _ = writeln!(
            text,
            "\n### {}.sql\n\n| statement | value | rule | held |\n|---|---|---|---|",
            one.template.name
        );
        for (name, inferred) in &one.script.rules {
            let _ = writeln!(
                text,
                "| {} | `{name}` | {} | {} |",
                inferred.at.0 + 1,
                rule(inferred),
                held(inferred)
            );
        }
    }
    text
}

fn rule(inferred: &Inferred) -> String {
    let rule = inferred.rule.describe().replace('|', "\\|").replace('\n', " ");
    match inferred.refused {
        Some(refused) => format!("{rule}; {refused} held too seldom"),
        None => rule,
    }
}

fn held(inferred: &Inferred) -> String {
    match inferred.hits {
        Some((hits, all)) if all > 0 => format!("{hits} of {all}"),
        Some(_) => "too few".to_owned(),
        None => String::new(),
    }
}
