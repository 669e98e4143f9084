//! The scripts of a run: found by name or file, parsed, and converted for the runner.
//!
//! Not here: their tables (`tables.rs`).

use std::io::{self, Read};
use std::path::Path;
use std::str::from_utf8;
use std::sync::OnceLock;

use isobench_database::{Database, OwnNames, Writes};
use isobench_plan::{DEFAULT_STRATEGY, Plan};
use isobench_result::PlannedScript;
use isobench_runner::{Protocol, RunWorkload, commit_points};
use isobench_script::{
    Builtin, Command, CommandKind, Mix, Script, Sql, Symbols, Value, Variables, Weighted, builtins,
    find_builtin, is_recorded, is_valid_variable_name, parse, resembles_script, split_weight,
};
use isobench_suggest::did_you_mean;
use isobench_workloads::{Chosen, pgbench_strategy};

use crate::failure::{Failure, Outcome};
use crate::round_trips::round_trips;
use crate::setup::BYTE_ORDER_MARK;

/// A script's text and origin.
#[derive(Debug, Clone)]
pub struct Source {
    /// As pgbench reports it: `<builtin: TPC-B (sort of)>` or the file's name.
    title: String,
    /// As isobench names it: `tpcb-like` or the file's name.
    pub name: String,
    text: String,
    weight: u64,
    /// The writes of a built-in script; unknown for a file.
    writes: Option<Writes>,
}

/// The weighted scripts of a run, parsed.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The scripts as found, in the order of the mix.
    scripts: Vec<Source>,
    mix: Mix,
    /// The variables that the scripts mention.
    symbols: Symbols,
    /// The checked workload, if the scripts belong to one.
    checked: Option<Chosen>,
}

/// Words of statements that a read-only server refuses (PostgreSQL manual, "Hot Standby").
const WRITING: [&str; 11] = [
    "insert", "update", "delete", "merge", "truncate", "create", "alter", "drop", "copy", "nextval", "vacuum",
];

/// The most characters of a statement in a list.
const LONGEST_STATEMENT: usize = 80;

/// Returns whether the argument names a checked workload, with or without variant and parameters.
fn is_checked(argument: &str) -> bool {
    let name = argument.split([':', '+']).next().unwrap_or_default();
    isobench_workloads::all().iter().any(|workload| workload.name == name)
}

impl Source {
    /// Returns a built-in script, by its name or an unambiguous prefix of it, with an optional
    /// `@weight`.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn builtin(argument: &str) -> Outcome<Source> {
        let (name, weight) = split_weight(argument).map_err(Failure::setup)?;
        let builtin = find_builtin(name).map_err(|error| {
            let meant = did_you_mean(name, builtins().iter().map(|builtin| builtin.name));
            Failure::setup(format!("{error}{meant}"))
        })?;
        Ok(Source::of_builtin(builtin, weight))
    }

    fn of_builtin(builtin: &Builtin, weight: u64) -> Source {
        Source {
            title: builtin.description.to_owned(),
            name: builtin.name.to_owned(),
            text: builtin.text.to_owned(),
            weight,
            writes: Writes::of_builtin(builtin.name),
        }
    }

    /// Returns a script file, `-` for standard input, with an optional `@weight`.
    ///
    /// # Errors
    /// The file can't be read, or isn't UTF-8.
    pub fn file(argument: &str) -> Outcome<Source> {
        let (name, weight) = split_weight(argument).map_err(Failure::setup)?;
        Source::read("--file", name, weight)
    }

    fn read(option: &str, name: &str, weight: u64) -> Outcome<Source> {
        let bytes = if name == "-" { standard_input() } else { isobench_trust::read(Path::new(name)) };
        let bytes = bytes
            .map_err(|error| Failure::setup(format!("{option}: could not open file \"{name}\": {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| not_utf8(name, error.as_bytes()))?;
        let text = text.trim_start_matches(BYTE_ORDER_MARK).to_owned();
        if !resembles_script(&text) {
            return Err(Failure::setup(format!(
                "{option}: the file \"{name}\" is no script: no line of it begins like SQL or a meta-command (\\set)"
            )));
        }
        Ok(Source { title: name.to_owned(), name: name.to_owned(), text, weight, writes: None })
    }

    /// Returns the built-in script of exactly this name if there is one, otherwise a script file.
    ///
    /// # Errors
    /// Neither exists, or the name has a weight, which belongs to a mix.
    fn builtin_or_file(name: &str) -> Outcome<Source> {
        if let Some(builtin) = builtins().iter().find(|builtin| builtin.name == name) {
            return Ok(Source::of_builtin(builtin, 1));
        }
        if name == "-" || Path::new(name).exists() {
            return Source::read("--workload", name, 1);
        }
        if let Some((script, weight)) = name.rsplit_once('@') {
            let option = if find_builtin(script).is_ok() { "-b" } else { "-f" };
            return Err(Failure::setup(format!(
                "--workload: several of them are compared, not mixed, so \"{name}\" can't have a weight (@{weight}); \
                 give each script of a mix by -f FILE@WEIGHT or -b NAME@WEIGHT, here {option} {name}"
            )));
        }
        Err(unknown_workload(name))
    }
}

/// Returns the failure of a script that isn't UTF-8, with the first line that isn't.
fn not_utf8(name: &str, bytes: &[u8]) -> Failure {
    let valid = from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let line = bytes[..valid].split(|byte| *byte == b'\n').count();
    Failure::setup(format!(
        "{name}:{line}: the script isn't UTF-8; convert it, such as by: iconv -f LATIN1 -t UTF-8 {name}"
    ))
}

fn unknown_workload(name: &str) -> Failure {
    let scripts: Vec<&str> = builtins().iter().map(|builtin| builtin.name).collect();
    let checked: Vec<&str> = isobench_workloads::all().iter().map(|workload| workload.name).collect();
    let meant = did_you_mean(name, scripts.iter().chain(&checked).copied());
    Failure::setup(format!(
        "workload \"{name}\"{meant} is neither a built-in script ({}), nor a checked workload ({}), nor a file",
        scripts.join(", "),
        checked.join(", ")
    ))
}

impl Sources {
    /// Returns the workload of this name: a checked workload, a built-in script or a file.
    ///
    /// # Errors
    /// The name is unknown or has a weight, or a script has an error.
    pub fn named(name: &str) -> Outcome<Sources> {
        if is_checked(name) {
            return Sources::checked_workload(name);
        }
        Sources::new(vec![Source::builtin_or_file(name)?])
    }

    /// Returns a mix of built-in scripts and files, each with its weight.
    ///
    /// # Errors
    /// A name is unknown, a file can't be read, or a script has an error.
    pub fn mixed(builtin: &[String], files: &[String]) -> Outcome<Sources> {
        let builtin = builtin.iter().map(|name| Source::builtin(name));
        let files = files.iter().map(|name| Source::file(name));
        Sources::new(builtin.chain(files).collect::<Outcome<_>>()?)
    }

    /// Returns the scripts of a checked workload, with or without variant and parameters in its
    /// name.
    ///
    /// # Errors
    /// There is no such workload, variant or parameter.
    pub fn checked_workload(name: &str) -> Outcome<Sources> {
        Sources::of_checked(isobench_workloads::find(name).map_err(Failure::setup)?)
    }

    /// Returns the scripts of a checked workload.
    ///
    /// # Errors
    /// A script has an error: a defect of isobench.
    pub fn of_checked(chosen: Chosen) -> Outcome<Sources> {
        let script = |script: isobench_workloads::Script| Source {
            title: script.name.clone(),
            name: script.name,
            text: script.text,
            weight: script.weight,
            writes: None,
        };
        let scripts = chosen.scripts().into_iter().map(script).collect();
        Sources::parse(scripts, Some(chosen))
    }

    /// Returns these scripts with a strategy, and the SQL that creates the functions that they then
    /// call.
    ///
    /// # Errors
    /// A script has no such strategy, or is the user's own.
    pub fn coping(&self, strategy: &str) -> Outcome<(Sources, Vec<String>)> {
        let mut functions = Vec::new();
        let mut scripts = Vec::new();
        for source in &self.scripts {
            if strategy == DEFAULT_STRATEGY {
                scripts.push(source.clone());
                continue;
            }
            if source.writes.is_none() {
                return Err(Failure::setup(format!(
                    "--strategies: {strategy}: script \"{}\" is your own, and isobench can't rewrite it; write one \
                     script for each strategy, or leave the option out",
                    source.name
                )));
            }
            let found = pgbench_strategy(&source.name, strategy)
                .map_err(|error| Failure::setup(format!("--strategies: {error}")))?;
            functions.extend(found.setup.iter().map(|sql| (*sql).to_owned()));
            scripts.push(Source {
                title: format!("{} with strategy {strategy}", source.name),
                text: found.script.to_owned(),
                ..source.clone()
            });
        }
        Ok((Sources::parse(scripts, None)?, functions))
    }

    /// Returns whether the scripts have this strategy.
    pub fn has_strategy(&self, name: &str) -> bool {
        match &self.checked {
            Some(chosen) => {
                name == DEFAULT_STRATEGY
                    || chosen.workload().variants.iter().any(|variant| variant.name == name)
            }
            None => self.coping(name).is_ok(),
        }
    }

    /// Returns the names of the variables that the scripts mention.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.symbols.names()
    }

    /// Returns whether a script mentions this variable.
    pub fn mentions(&self, variable: &str) -> bool {
        self.symbols.lookup(variable).is_some()
    }

    /// Returns these scripts and further ones that only the clients on a standby run.
    ///
    /// # Errors
    /// A script can't be read or has an error, or the workload has its own.
    pub fn with_readers(self, names: &[String]) -> Outcome<Sources> {
        if names.is_empty() {
            return Ok(self);
        }
        if self.checked.is_some() {
            return Err(Failure::setup(format!(
                "--read-script: workload {} has scripts of its own that only read; leave it out",
                self.name()
            )));
        }
        let mut scripts = self.scripts;
        for name in names {
            let of_option = |failure: Failure| Failure::setup(format!("--read-script: {failure}"));
            let source = Source::builtin_or_file(name).map_err(of_option)?;
            let alone = Sources::new(vec![source.clone()]).map_err(of_option)?;
            if let Some(why) = alone.writing() {
                return Err(Failure::setup(format!(
                    "--read-script: {why}, but nothing can be written on a standby"
                )));
            }
            // Other clients never choose it.
            scripts.push(Source { weight: 0, ..source });
        }
        Sources::parse(scripts, None)
    }

    /// Returns the scripts that only read, by their numbers: those of --read-script if there are any.
    pub fn reading(&self) -> Vec<usize> {
        let scripts = self.mix.scripts();
        let numbers = |wanted: &dyn Fn(&Weighted) -> bool| {
            (0..scripts.len()).filter(|number| wanted(&scripts[*number])).collect::<Vec<_>>()
        };
        let added = numbers(&|weighted| weighted.weight == 0);
        if !added.is_empty() {
            return added;
        }
        numbers(&|weighted| weighted.script.sql().all(|sql| sql.keyword(&WRITING).is_none()))
    }

    /// Returns whether a script sets `synchronous_commit` by itself.
    pub fn sets_commit(&self) -> bool {
        self.scripts.iter().any(|source| source.text.to_ascii_lowercase().contains("synchronous_commit"))
    }

    /// Returns the fewest and the most round trips of an attempt of any script.
    pub fn round_trips(&self) -> (u32, u32) {
        let ranges = self.mix.scripts().iter().map(|weighted| round_trips(&weighted.script));
        let widest = |(least, most): (u32, u32), range: (u32, u32)| (least.min(range.0), most.max(range.1));
        ranges.reduce(widest).unwrap_or((0, 0))
    }

    /// Returns these scripts for a server on which isobench's tables are in their own schema: the
    /// scripts that come with isobench get the schema's name. `functions` is the SQL that created
    /// the functions that they call. The user's scripts are unchanged.
    ///
    /// # Errors
    /// A script can't be parsed with these names: a defect of isobench.
    pub fn placed(&self, database: &Database, functions: &[String]) -> Outcome<Sources> {
        let names = match &self.checked {
            Some(chosen) => chosen.names(database),
            None => OwnNames::made_by(functions.iter().map(String::as_str)),
        };
        let own = |source: &Source| self.checked.is_some() || source.writes.is_some();
        let placed = |source: &Source| {
            let text = if own(source) { database.place(&source.text, &names) } else { (&source.text).into() };
            Source { text: text.into_owned(), ..source.clone() }
        };
        Sources::parse(self.scripts.iter().map(placed).collect(), self.checked.clone())
    }

    /// Returns the checked workload, if the scripts belong to one.
    pub fn checked(&self) -> Option<&Chosen> {
        self.checked.as_ref()
    }

    /// Returns whether SQL of a script was recorded: nobody who runs it has written it.
    pub fn are_recorded(&self) -> bool {
        self.texts().any(is_recorded)
    }

    /// Returns whether the scripts describe their reads and writes in lines `--@`.
    pub fn is_annotated(&self) -> bool {
        self.mix.is_annotated()
    }

    /// Combines scripts, and parses each, so that errors are found before anything is started.
    ///
    /// # Errors
    /// A script has an error (with file, line and column), is empty, or the weights make no mix.
    pub fn new(scripts: Vec<Source>) -> Outcome<Sources> {
        Sources::parse(scripts, None)
    }

    fn parse(scripts: Vec<Source>, checked: Option<Chosen>) -> Outcome<Sources> {
        let mut symbols = Symbols::new();
        let mut weighted = Vec::new();
        for source in &scripts {
            let script = parse(&source.title, &source.text, &mut symbols).map_err(Failure::setup)?;
            if script.commands.is_empty() {
                return Err(Failure::setup(format!("empty command list for script \"{}\"", source.title)));
            }
            weighted.push(Weighted { script, weight: source.weight });
        }
        let mix = Mix::new(weighted).map_err(Failure::setup)?;
        Ok(Sources { scripts, mix, symbols, checked })
    }

    /// The texts of the scripts, in the order of the mix.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.scripts.iter().map(|source| source.text.as_str())
    }

    /// The same scripts with other texts, in the order of the mix.
    ///
    /// # Errors
    /// A script has an error.
    pub fn with_texts(&self, texts: impl IntoIterator<Item = String>) -> Outcome<Sources> {
        let scripts = self.scripts.iter().zip(texts);
        let scripts = scripts.map(|(source, text)| Source { text, ..source.clone() }).collect();
        Sources::parse(scripts, self.checked.clone())
    }

    /// Only the scripts of these names.
    ///
    /// # Errors
    /// None is left.
    pub fn among(&self, names: &[String]) -> Outcome<Sources> {
        let wanted = |source: &&Source| names.contains(&source.name);
        Sources::parse(self.scripts.iter().filter(wanted).cloned().collect(), self.checked.clone())
    }

    /// The parsed scripts with their weights.
    pub fn mix(&self) -> &Mix {
        &self.mix
    }

    /// Returns the workload for the runner, with `scale` and `random_seed` set and then the user's
    /// definitions; the runner sets `client_id` and `default_seed`.
    ///
    /// # Errors
    /// A variable's name is invalid.
    pub fn workload(&self, scale: u32, seed: u64, defined: &[(String, String)]) -> Outcome<RunWorkload> {
        let mut symbols = self.symbols.clone();
        let seed_value = Value::Int(seed.cast_signed());
        let automatic = [("scale", Value::Int(scale.into())), ("random_seed", seed_value)];
        for (name, _) in &automatic {
            symbols.intern(name);
        }
        for name in ["client_id", "default_seed"] {
            symbols.intern(name);
        }
        let parameters = self.checked.as_ref().map(Chosen::variables).unwrap_or_default();
        for (name, _) in &parameters {
            symbols.intern(name);
        }
        let mut variables = Variables::new(&symbols);
        for (name, value) in automatic {
            let slot = symbols.intern(name);
            variables.set(slot, value);
        }
        for (name, value) in parameters {
            let slot = symbols.intern(&name);
            variables.set(slot, value);
        }
        for (name, value) in defined {
            if !is_valid_variable_name(name) {
                return Err(Failure::setup(format!("invalid variable name: \"{name}\"")));
            }
            let slot = symbols.intern(name);
            variables.set_text(slot, value);
        }
        Ok(RunWorkload { mix: self.mix.clone(), symbols, variables })
    }

    /// Returns each script alone, for the trial before the measurement; without scripts that can't
    /// be tried.
    ///
    /// # Errors
    /// A variable's name is invalid.
    pub fn tried(&self, scale: u32, seed: u64, defined: &[(String, String)]) -> Outcome<Vec<RunWorkload>> {
        let alone = |source: &Source| {
            let sources = Sources::parse(vec![Source { weight: 1, ..source.clone() }], self.checked.clone())?;
            let mut workload = sources.workload(scale, seed, defined)?;
            let script = workload.mix.scripts().first().map(|weighted| weighted.script.clone());
            let tried = script.and_then(|script| script.in_rolled_back_transaction(&mut workload.symbols));
            let Some(script) = tried else { return Ok(None) };
            workload.mix = Mix::new(vec![Weighted { script, weight: 1 }]).map_err(Failure::setup)?;
            Ok(Some(workload))
        };
        self.scripts.iter().filter_map(|source| alone(source).transpose()).collect()
    }

    /// Checks the limits of the protocol.
    ///
    /// # Errors
    /// A command has more parameters than the extended protocol takes.
    pub fn check(&self, protocol: Protocol) -> Outcome {
        if protocol == Protocol::Simple {
            return Ok(());
        }
        let mut sql = self.mix.scripts().iter().flat_map(|weighted| weighted.script.sql());
        if let Some(sql) = sql.find(|sql| sql.has_too_many_params()) {
            return Err(Failure::setup(format!(
                "statement has too many arguments (maximum is {}): {}; use --protocol simple",
                Sql::MAX_PARAMS,
                sql.parameterized
            )));
        }
        Ok(())
    }

    /// Checks that no script of the user's sets a level where isobench sets it, and names the row
    /// after it.
    ///
    /// # Errors
    /// The first command that does, with its line.
    pub fn leave_level_alone(&self) -> Outcome {
        let sets = |weighted: &Weighted| weighted.script.commands.iter().find_map(Command::level_set);
        let found =
            self.mix.scripts().iter().find_map(|weighted| Some((&weighted.script.name, sets(weighted)?)));
        let Some((script, (line, text))) = found else { return Ok(()) };
        Err(Failure::setup(format!(
            "{script}:{line}: \"{text}\" sets or resets the isolation level, so the row would be measured under a wrong \
             name; leave that to --levels (compare, audit) or --isolation (run), and write a plain BEGIN"
        )))
    }

    /// The name of the mix: `tpcb-like`, `registers:keys=50`, or `a.sql@3+select-only@1`.
    pub fn name(&self) -> String {
        self.names().join("+")
    }

    /// Returns the writes of each script into the TPC-B-like tables; `None` if the user's own
    /// scripts are included.
    pub fn writes(&self) -> Option<Vec<Writes>> {
        self.scripts.iter().map(|source| source.writes).collect()
    }

    /// Returns the name of a script that writes or locks rows, and the evidence for it. `None` if
    /// no such statement is found; the bodies of functions aren't examined.
    pub fn writing(&self) -> Option<String> {
        self.mix.scripts().iter().zip(&self.scripts).find_map(|(weighted, source)| {
            let keyword = weighted.script.sql().find_map(|sql| sql.keyword(&WRITING))?;
            Some(format!("script \"{}\" writes ({})", source.name, keyword.to_uppercase()))
        })
    }

    /// Returns the part of a plan that names these scripts: a workload, or the scripts of a mix.
    pub fn named_in(&self) -> Plan {
        if self.checked.is_some() || self.scripts.len() == 1 {
            return Plan { workload: Some(vec![self.name()]), ..Plan::default() };
        }
        let of = |builtin: bool| {
            let scripts = self.scripts.iter().filter(|source| source.writes.is_some() == builtin);
            let names: Vec<String> =
                scripts.map(|source| format!("{}@{}", source.name, source.weight)).collect();
            (!names.is_empty()).then_some(names)
        };
        Plan { builtin: of(true), file: of(false), ..Plan::default() }
    }

    /// Returns the statements that write or lock rows, each with its script and line, in one line.
    /// The bodies of functions aren't examined.
    pub fn writing_statements(&self) -> Vec<String> {
        let of = |weighted: &Weighted| {
            let shown = |command: &Command| {
                let CommandKind::Sql(sql) = &command.kind else { return None };
                sql.keyword(&WRITING)?;
                let text = sql.as_written().split_whitespace().collect::<Vec<_>>().join(" ");
                let text = text.trim_end_matches(';');
                let cut: String = text.chars().take(LONGEST_STATEMENT).collect();
                let more = if cut.len() < text.len() { "…" } else { "" };
                Some(format!("{}:{}: {cut}{more}", weighted.script.name, command.line))
            };
            weighted.script.commands.iter().filter_map(shown).collect::<Vec<_>>()
        };
        self.mix.scripts().iter().flat_map(of).collect()
    }

    /// Returns the names of the scripts, with weights if there are several, or of the checked
    /// workload.
    fn names(&self) -> Vec<String> {
        match (&self.checked, self.scripts.as_slice()) {
            (Some(chosen), _) => vec![chosen.name()],
            (None, [only]) => vec![only.name.clone()],
            (None, scripts) => {
                scripts.iter().map(|source| format!("{}@{}", source.name, source.weight)).collect()
            }
        }
    }

    /// Returns the result document's description of the scripts. `workload` names what they belong
    /// to, if there are several workloads.
    pub fn planned(&self, workload: &str) -> Vec<PlannedScript> {
        let planned = |source: &Source| PlannedScript {
            workload: workload.to_owned(),
            name: source.name.clone(),
            weight: u32::try_from(source.weight).unwrap_or(u32::MAX),
            per_minute: self.note_of_rate(&source.name),
            text: source.text.clone(),
        };
        self.scripts.iter().map(planned).collect()
    }

    /// Returns what the rate per minute of a script isn't, if its workload has it reported.
    fn note_of_rate(&self, name: &str) -> Option<String> {
        let workload = self.checked.as_ref()?.workload();
        let rate = workload.rate_of.as_ref()?;
        (name == format!("{}/{}", workload.name, rate.script)).then(|| rate.note.to_owned())
    }

    /// Returns warnings about the scripts that bear on the figures.
    pub fn warnings(&self) -> Vec<String> {
        // The scripts that come with isobench use advisory locks correctly: taken and released
        // outside of the block.
        let own = self.scripts.iter().map(|source| self.checked.is_none() && source.writes.is_none());
        let points = |script: &Script| {
            let inputs = script.sql().take_while(|sql| sql.takes_inputs()).count();
            commit_points(script).saturating_sub(inputs)
        };
        let several =
            self.mix.scripts().iter().zip(own).filter(|(weighted, own)| *own && points(&weighted.script) > 1);
        several
            .map(|(weighted, _)| {
                format!(
                    "script \"{}\" commits {} times; after a conflict the whole script is repeated, also what it had \
                     committed already. Put it into one transaction block, or split it into several scripts",
                    weighted.script.name,
                    points(&weighted.script)
                )
            })
            .collect()
    }

    /// Returns the SQL commands of the user's own scripts, each with its script and line.
    pub fn own_statements(&self) -> impl Iterator<Item = (String, &Sql)> {
        let own = |source: &Source| self.checked.is_none() && source.writes.is_none();
        let scripts = self.mix.scripts().iter().zip(&self.scripts).filter(move |(_, source)| own(source));
        scripts.flat_map(|(weighted, _)| placed(weighted))
    }

    /// Returns the SQL commands of all scripts, likewise.
    pub fn statements(&self) -> impl Iterator<Item = (String, &Sql)> {
        self.mix.scripts().iter().flat_map(placed)
    }

    /// Returns whether a script is the user's own.
    pub fn is_own(&self) -> bool {
        self.checked.is_none() && self.scripts.iter().any(|source| source.writes.is_none())
    }

    /// Returns whether a script is built in, and therefore uses the TPC-B-like tables.
    pub fn has_builtin(&self) -> bool {
        self.scripts.iter().any(|source| source.writes.is_some())
    }
}

/// The SQL commands of a script, each with the script's name and the line.
fn placed(weighted: &Weighted) -> impl Iterator<Item = (String, &Sql)> {
    let place = |line| format!("{}:{line}", weighted.script.name);
    weighted.script.commands.iter().filter_map(move |command| match &command.kind {
        CommandKind::Sql(sql) => Some((place(command.line), sql)),
        _ => None,
    })
}

/// What standard input holds. It can be read once, but `advise` makes its workload more than once.
fn standard_input() -> io::Result<Vec<u8>> {
    static HELD: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(held) = HELD.get() {
        return Ok(held.clone());
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(HELD.get_or_init(|| bytes).clone())
}
