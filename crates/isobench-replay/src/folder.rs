//! The files that are made of a capture: scripts, their tables, the plan, and a page that says what
//! they cover.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use isobench_isolation::Level;

use crate::dump::{DumpError, placeable};
use crate::inference::{Inferred, Lineage, Rule, infer};
use crate::script::{Keys, Script, write};
use crate::sessions::Recorded;
use crate::template::{Scope, Template, Templates, statements};

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
    /// The mean number of rows of each statement, and the share of executions with none.
    pub rows: Vec<(f64, f64)>,
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
        let lineage = Lineage::of(recorded);
        let templates = Templates::of(recorded, options.scope, options.coverage);
        if templates.total == 0 {
            return Err(Unmade::Empty);
        }
        let setup = setup(recorded, tables)?;
        let mut keys = Keys::default();
        let (mut made, mut refused) = (Vec::new(), Vec::new());
        for template in &templates.kept {
            let inferred = infer(template, &lineage, &recorded.header.began);
            match write(template, made.len() + 1, &inferred, &lineage, &mut keys) {
                Ok(script) => made.push(Made { template, script }),
                Err(why) => refused.push(format!("{}: {why}", template.name)),
            }
        }
        if made.is_empty() {
            return Err(Unmade::Nothing(refused.join("; ")));
        }
        let summary = summary(recorded, &templates, &made, &refused);
        let mut files: Vec<(String, String)> =
            made.iter().map(|one| (format!("{}.sql", one.template.name), one.script.text.clone())).collect();
        let inputs: String = made.iter().map(|one| one.script.inputs.as_str()).collect();
        files.push(("setup.sql".to_owned(), format!("{setup}{}{inputs}ANALYZE;\n", keys.sql())));
        files.push(("workload.toml".to_owned(), plan(&made)));
        files.push(("README.md".to_owned(), readme(&templates, &made, &summary)));
        let expected = Expected::of(recorded, &templates, &made);
        Ok(Folder { files, summary, expected })
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
        let scripts = made.iter().map(|one| ExpectedScript {
            name: format!("{}.sql", one.template.name),
            count: one.template.count,
            rows: rows(one.template),
        });
        Expected {
            sessions: sessions.max(1),
            level,
            conflicts: conflicts as f64 / recorded.transactions.len().max(1) as f64,
            scripts: scripts.collect(),
        }
    }
}

/// The mean number of rows of each statement, and the share of executions with none.
fn rows(template: &Template<'_>) -> Vec<(f64, f64)> {
    let count = template.instances.len().max(1) as f64;
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for unit in &template.instances {
        for (number, executed) in statements(unit).enumerate() {
            let of_tag = || executed.answer.tag.as_deref()?.rsplit(' ').next()?.parse::<u64>().ok();
            let rows =
                if executed.answer.columns.is_some() { executed.answer.rows } else { of_tag().unwrap_or(0) };
            if sums.len() <= number {
                sums.push((0.0, 0.0));
            }
            sums[number].0 += rows as f64 / count;
            sums[number].1 += f64::from(u8::from(rows == 0)) / count;
        }
    }
    sums
}

/// SQL that makes the application's tables.
fn setup(recorded: &Recorded, tables: &Tables) -> Result<String, Unmade> {
    match tables {
        Tables::Setup(text) if text.contains("public.") || text.contains("search_path") => {
            Ok(placeable(text)?)
        }
        Tables::Setup(text) => Ok(format!("{}\n", text.trim_end())),
        Tables::Dump(text) => Ok(placeable(text)?),
        Tables::Captured => {
            let all = recorded.schema.join(";\n");
            let placed = placeable(&all)?;
            let makes = crate::lexer::words(&placed)
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
