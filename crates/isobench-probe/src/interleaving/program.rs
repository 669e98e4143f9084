//! A script as a program to try: what it draws, and why some can't be tried.

use std::collections::BTreeMap;

use isobench_script::{Command, CommandKind, Script, Sql, Statement, Symbols, Value, Variables};

/// The numbers that a script's draws are to lead to, by their commands.
pub type Targets = BTreeMap<usize, i64>;

/// Scripts to try against each other, with the variables that all of them start with.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The scripts.
    pub programs: Vec<Program>,
    /// The names of their variables.
    pub symbols: Symbols,
    /// The variables of a client before it runs a script: `scale`, definitions.
    pub variables: Variables,
    /// The scripts that can't be tried, each with the reason.
    pub refused: Vec<(String, String)>,
    /// Values of variables are sent as literals, as far as quotation marks go: what a parameter of the
    /// extended protocol is. Else they are a part of the text, as in the simple protocol.
    pub literals: bool,
}

/// A script that can be tried.
#[derive(Debug, Clone)]
pub struct Program {
    /// The script.
    pub script: Script,
    /// The random numbers that it draws, in the order of the script.
    pub draws: Vec<Draw>,
}

/// A random number that a script draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// The command, and the number of the call within it.
    pub place: Place,
    /// The range as it is written.
    pub range: String,
}

/// A call of a function that draws: the index of its command, and its number there.
pub type Place = (usize, usize);

/// The place of the number of the client, which is chosen like what a script draws.
pub const CLIENT: Place = (usize::MAX, 0);

/// The numbers chosen for the draws of one transaction; the first ones for those that aren't mentioned.
pub type Choice = BTreeMap<Place, Number>;

/// A number chosen for a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// So far above the number from which the program counts.
    Above(i64),
    /// This one.
    Is(i64),
}

impl Number {
    /// The number itself, of a draw from this range. The program counts from `start` where the range has
    /// it, else from the least.
    pub fn of(self, start: Option<i64>, least: i64, most: i64) -> i64 {
        let first = start.filter(|start| (least..=most).contains(start)).unwrap_or(least);
        let number = match self {
            Number::Above(above) => first.saturating_add(above),
            Number::Is(number) => number,
        };
        number.clamp(least, most)
    }

    /// A number that is further above.
    #[must_use]
    pub fn plus(self, further: i64) -> Number {
        match self {
            Number::Above(above) => Number::Above(above.saturating_add(further)),
            Number::Is(number) => Number::Is(number.saturating_add(further)),
        }
    }
}

/// The number that is chosen for a draw from this range.
pub fn number_of(choice: &Choice, place: Place, start: Option<i64>, least: i64, most: i64) -> i64 {
    choice.get(&place).copied().unwrap_or(Number::Above(0)).of(start, least, most)
}

/// One transaction of a trial: a program and its numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transaction {
    /// The index of the program.
    pub program: usize,
    /// Its numbers.
    pub choice: Choice,
    /// What draws are to lead to instead.
    pub targets: Targets,
}

impl Transaction {
    /// A transaction with the first numbers.
    pub fn of(program: usize) -> Transaction {
        Transaction::with(program, Choice::new())
    }

    /// A transaction with these numbers.
    pub fn with(program: usize, choice: Choice) -> Transaction {
        Transaction { program, choice, targets: Targets::new() }
    }
}

/// Words with which statements begin that change more than rows, or that a trial can't undo.
const NOT_TRIED: [(&str, &str); 20] = [
    ("copy", "COPY"),
    ("create", "a change of the schema"),
    ("alter", "a change of the schema"),
    ("drop", "a change of the schema"),
    ("truncate", "TRUNCATE, which isn't undone row by row"),
    ("comment", "a change of the schema"),
    ("grant", "a change of privileges"),
    ("revoke", "a change of privileges"),
    ("reindex", "a change of the schema"),
    ("cluster", "a change of the schema"),
    ("refresh", "REFRESH MATERIALIZED VIEW"),
    ("vacuum", "VACUUM"),
    ("analyze", "ANALYZE"),
    ("checkpoint", "CHECKPOINT"),
    ("load", "LOAD"),
    ("discard", "DISCARD"),
    ("security", "a change of privileges"),
    ("reassign", "a change of privileges"),
    ("import", "a change of the schema"),
    ("connect", "CONNECT"),
];

/// Texts by which statements ask for the time.
const CLOCKS: [&str; 8] = [
    "now(",
    "current_timestamp",
    "current_time",
    "current_date",
    "localtime",
    "clock_timestamp",
    "statement_timestamp",
    "'now'",
];

/// Functions that wait for time to pass.
const SLEEPING: [&str; 3] = ["pg_sleep", "pg_sleep_for", "pg_sleep_until"];

impl Programs {
    /// Takes scripts, and notes those that can't be tried.
    pub fn new<'a>(
        scripts: impl IntoIterator<Item = &'a Script>,
        symbols: Symbols,
        variables: Variables,
    ) -> Programs {
        let (mut programs, mut refused) = (Vec::new(), Vec::new());
        for script in scripts {
            match refusal(script) {
                Some(why) => refused.push((script.name.clone(), why)),
                None => programs.push(Program::new(script, &symbols)),
            }
        }
        Programs { programs, symbols, variables, refused, literals: false }
    }

    /// The same without scripts that name one of these schemas, in which rows aren't put back.
    #[must_use]
    pub fn outside_of(mut self, schemas: &[String]) -> Programs {
        for program in std::mem::take(&mut self.programs) {
            let named = schemas
                .iter()
                .find(|schema| program.script.sql().any(|sql| names_schema(&sql.as_written(), schema)));
            match named {
                Some(schema) => {
                    let why = format!("it names schema \"{schema}\", whose rows couldn't be put back");
                    self.refused.push((program.script.name, why));
                }
                None => self.programs.push(program),
            }
        }
        self
    }

    /// The variables with which the client of this number begins a script.
    pub fn variables_of(&self, client: i64) -> Variables {
        let mut variables = self.variables.clone();
        for (name, value) in
            [("client_id", client), ("attempt_id", client.saturating_add(1)), ("default_seed", 1)]
        {
            if let Some(slot) = self.symbols.lookup(name).filter(|slot| !variables.is_set(*slot)) {
                variables.set(slot, Value::Int(value));
            }
        }
        variables
    }

    /// The name of a program for people.
    pub fn name(&self, program: usize) -> &str {
        self.programs.get(program).map_or("", |program| &program.script.name)
    }

    /// True if a script asks for the time.
    pub fn ask_for_time(&self) -> bool {
        let mut all = self.programs.iter().flat_map(|program| program.script.sql());
        all.any(|sql| {
            let text = sql.as_written().to_ascii_lowercase();
            CLOCKS.iter().any(|clock| text.contains(clock))
        })
    }

    /// True if a script has one of these words outside of quotes and comments.
    pub fn mention(&self, words: &[&str]) -> bool {
        let mut all = self.programs.iter().flat_map(|program| program.script.sql());
        all.any(|sql| sql.keyword(words).is_some())
    }
}

impl Program {
    /// True if it may take another way when numbers have grown: it has a condition, or SQL that
    /// compares.
    pub fn decides(&self) -> bool {
        self.script.commands.iter().any(|command| match &command.kind {
            CommandKind::If(_) | CommandKind::Elif(_) => true,
            CommandKind::Sql(sql) => sql.as_written().contains(['<', '>']),
            _ => false,
        })
    }

    /// The commands with a condition.
    pub fn conditions(&self) -> impl Iterator<Item = usize> {
        let commands = self.script.commands.iter().enumerate();
        commands.filter_map(|(at, command)| match &command.kind {
            CommandKind::If(arm) | CommandKind::Elif(arm) => arm.cond.as_ref().map(|_| at),
            _ => None,
        })
    }

    /// True if what it does may depend on the number of its client.
    pub fn uses_client(&self, symbols: &Symbols) -> bool {
        let Some(client) = symbols.lookup("client_id") else { return false };
        self.script.commands.iter().any(|command| match &command.kind {
            CommandKind::Set { expr, .. } => expr.variables().contains(&client),
            CommandKind::If(arm) | CommandKind::Elif(arm) => {
                arm.cond.as_ref().is_some_and(|condition| condition.variables().contains(&client))
            }
            CommandKind::Sql(sql) => sql.params.contains(&client),
            _ => false,
        })
    }

    fn new(script: &Script, symbols: &Symbols) -> Program {
        let mut draws = Vec::new();
        for (at, command) in script.commands.iter().enumerate() {
            let expr = match &command.kind {
                CommandKind::Set { expr, .. } => Some(expr),
                CommandKind::If(arm) | CommandKind::Elif(arm) => arm.cond.as_ref(),
                _ => None,
            };
            let ranges = expr.map(|expr| expr.draws(symbols)).unwrap_or_default();
            let drawn = ranges.into_iter().enumerate();
            draws.extend(drawn.map(|(number, range)| Draw { place: (at, number), range }));
        }
        Program { script: script.clone(), draws }
    }
}

/// True if a text has this name with a dot after it, in quotes or comments, too.
pub fn names_schema(text: &str, schema: &str) -> bool {
    let (text, schema) = (text.to_lowercase().replace('"', ""), schema.to_lowercase());
    text.match_indices(&schema).any(|(at, _)| {
        let part_of_a_word = text[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        !part_of_a_word && text[at + schema.len()..].trim_start().starts_with('.')
    })
}

/// The reason that a script can't be tried, if it can't.
fn refusal(script: &Script) -> Option<String> {
    script.commands.iter().find_map(|command| {
        let why = unsuitable(command)?;
        Some(format!("line {}: {why}", command.line))
    })
}

fn unsuitable(command: &Command) -> Option<String> {
    match &command.kind {
        CommandKind::Sql(sql) => unsuitable_sql(sql),
        CommandKind::Shell { .. } | CommandKind::SetShell { .. } => {
            Some(format!("\\{} runs a program", command.kind.name()))
        }
        CommandKind::StartPipeline | CommandKind::SyncPipeline | CommandKind::EndPipeline => {
            Some("a pipeline isn't sent statement by statement".to_owned())
        }
        _ if command.sets_level() => Some("it sets its own level".to_owned()),
        _ => None,
    }
}

fn unsuitable_sql(sql: &Sql) -> Option<String> {
    if sql.statements.contains(&Statement::Copy) {
        return Some("COPY".to_owned());
    }
    let text = sql.as_written();
    let first = text.split(|letter: char| !letter.is_ascii_alphabetic()).find(|word| !word.is_empty())?;
    let listed = NOT_TRIED.iter().find(|(word, _)| word.eq_ignore_ascii_case(first));
    if let Some((_, why)) = listed {
        return Some((*why).to_owned());
    }
    let mut words = text.split_ascii_whitespace().map(str::to_ascii_lowercase);
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (first.as_str(), second.as_str()) {
        ("prepare", "transaction") => return Some("two-phase commit".to_owned()),
        ("set", "local" | "constraints" | "transaction") => {}
        ("set" | "reset" | "prepare" | "deallocate", _) => {
            return Some("a change of the session, which the next transaction would meet".to_owned());
        }
        _ => {}
    }
    if sql.keyword(&["prepared"]).is_some() {
        return Some("two-phase commit".to_owned());
    }
    sql.keyword(&SLEEPING).map(|function| format!("{function} waits for time to pass"))
}

#[cfg(test)]
pub(super) mod tests {
    use isobench_script::parse;

    use super::*;

    /// The programs of a script.
    pub(in crate::interleaving) fn programs(text: &str) -> Programs {
        let mut symbols = Symbols::new();
        let script = parse("a.sql", text, &mut symbols).unwrap();
        let variables = Variables::new(&symbols);
        Programs::new([&script], symbols, variables)
    }

    #[test]
    fn what_a_script_draws_is_known_by_its_place() {
        let found = programs("\\set a random(1, 9)\n\\set b random(1, 9) + random(1, 2)\nSELECT :a, :b;\n");
        let draws = &found.programs[0].draws;
        let shown: Vec<(Place, &str)> = draws.iter().map(|draw| (draw.place, &*draw.range)).collect();
        assert_eq!(shown, [((0, 0), "(1, 9)"), ((1, 0), "(1, 9)"), ((1, 1), "(1, 2)")]);
    }

    #[test]
    fn scripts_that_name_another_schema_are_refused() {
        let refused = |text: &str| programs(text).outside_of(&["shop".to_owned()]).refused.len();
        assert_eq!(refused("UPDATE shop.orders SET v = 1;\n"), 1);
        assert_eq!(refused("UPDATE \"Shop\" . orders SET v = 1;\n"), 1);
        assert_eq!(refused("UPDATE orders o SET v = workshop.v FROM workshop;\n"), 0);
        assert_eq!(refused("SELECT shop FROM orders;\n"), 0);
    }

    #[test]
    fn what_cannot_be_tried_is_refused_with_its_line() {
        let why = |text: &str| programs(text).refused.first().map(|(_, why)| why.clone());
        assert_eq!(why("SELECT 1;\nCREATE TABLE t (v int);\n").unwrap(), "line 2: a change of the schema");
        assert_eq!(why("PREPARE TRANSACTION 'x';\n").unwrap(), "line 1: two-phase commit");
        let session = "line 1: a change of the session, which the next transaction would meet";
        assert_eq!(why("SET work_mem = '1MB';\n").unwrap(), session);
        assert_eq!(why("BEGIN;\nSET LOCAL work_mem = '1MB';\nEND;\n"), None);
        assert_eq!(why("\\shell true\n").unwrap(), "line 1: \\shell runs a program");
        assert_eq!(why("SELECT pg_sleep(1);\n").unwrap(), "line 1: pg_sleep waits for time to pass");
        assert_eq!(why("SELECT 'pg_sleep';\nLOCK TABLE t;\n"), None);
        assert_eq!(
            why("BEGIN;\nLISTEN a;\nNOTIFY a, 'b';\nSAVEPOINT s;\nROLLBACK TO s;\nUNLISTEN *;\nEND;\n"),
            None
        );
    }
}
