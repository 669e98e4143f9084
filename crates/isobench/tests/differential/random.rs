//! Random scripts of the language, most of them valid, with random options. The same seed gives the same case.

use fastrand::Rng;

use crate::case::Case;

/// What one script is made of: the dice, the text, and what may be used at this place.
struct Writer {
    dice: Rng,
    text: String,
    /// Names of variables that exist.
    variables: Vec<String>,
    /// The script is for the extended protocol, so that there may be pipelines.
    extended: bool,
    /// Within a pipeline, where results can't be stored.
    pipeline: bool,
    /// Versions from 17 on have more commands.
    new: bool,
    depth: usize,
}

/// The case of a seed, for a version of pgbench.
pub fn case(seed: u64, version: u32) -> Case {
    let mut dice = Rng::with_seed(seed);
    let protocol = pick(&mut dice, &["simple", "extended", "prepared"]);
    let mut writer = Writer {
        text: String::new(),
        variables: ["client_id", "scale", "v", "w"].map(str::to_owned).to_vec(),
        extended: protocol != "simple",
        pipeline: false,
        new: version >= 17,
        depth: 0,
        dice,
    };
    let commands = writer.dice.usize(2..9);
    writer.commands(commands);
    let Writer { mut dice, text, .. } = writer;
    let text = if dice.u8(..) < 25 { damaged(&mut dice, &text) } else { text };
    let mut options = format!("-n -f x.sql -t {} -M {protocol} -D v={} -D w=1.5", dice.u8(1..5), dice.i8(..));
    for (option, chance) in OPTIONS {
        if dice.u8(..) < *chance {
            options.push(' ');
            options.push_str(option);
        }
    }
    Case {
        name: format!("random: seed {seed}"),
        options,
        files: vec![("x.sql".to_owned(), text)],
        status: None,
        ..Case::default()
    }
}

/// Options, and how often of 256 times they are given.
const OPTIONS: &[(&str, u8)] = &[
    ("-r", 80),
    ("--debug", 40),
    ("--max-tries=3", 80),
    ("--verbose-errors", 50),
    ("--failures-detailed", 40),
    ("-C", 25),
    ("-l", 25),
];

/// Functions and their numbers of arguments.
const FUNCTIONS: &[(&str, usize)] = &[
    ("abs", 1),
    ("int", 1),
    ("double", 1),
    ("sqrt", 1),
    ("exp", 1),
    ("ln", 1),
    ("greatest", 2),
    ("least", 3),
    ("mod", 2),
    ("power", 2),
    ("hash", 1),
    ("hash_murmur2", 2),
    ("debug", 1),
    ("random", 2),
    ("random_zipfian", 3),
    ("permute", 3),
    ("pi", 0),
];

const OPERATORS: &[&str] =
    &["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "#", "=", "<>", "<", ">=", "and", "or"];

impl Writer {
    fn commands(&mut self, count: usize) {
        for _ in 0..count {
            self.command();
        }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn command(&mut self) {
        match self.dice.u8(0..100) {
            0..28 => self.set(),
            28..52 => self.sql(),
            52..62 if self.depth < 3 => self.conditional(),
            62..70 if self.depth < 3 && !self.pipeline => self.block(),
            70..82 => self.store(),
            82..92 if self.extended && !self.pipeline && self.depth < 3 => self.pipeline(),
            92..94 => self.line("\\sleep 0"),
            94..95 => self.line("-- a comment :v"),
            95..96 => self.line(""),
            96..97 if self.extended && self.new => self.line("\\syncpipeline"),
            97..98 => self.line("\\shell true"),
            _ => self.sql(),
        }
    }

    fn set(&mut self) {
        let value = self.expression(3);
        let name = pick(&mut self.dice, &["a", "b", "c", "v"]);
        let broken = self.dice.u8(..) < 20;
        self.line(&format!("\\set {name} {}{value}", if broken { "\\\n    " } else { "" }));
        self.variables.push(name.to_owned());
    }

    fn conditional(&mut self) {
        let condition = self.condition();
        self.line(&format!("\\if {condition}"));
        self.branch();
        if self.dice.bool() {
            let condition = self.condition();
            self.line(&format!("\\elif {condition}"));
            self.branch();
        }
        if self.dice.bool() {
            self.line("\\else");
            self.branch();
        }
        self.line("\\endif");
    }

    fn branch(&mut self) {
        self.depth += 1;
        let count = self.dice.usize(0..3);
        self.commands(count);
        self.depth -= 1;
    }

    fn condition(&mut self) -> String {
        match self.dice.u8(0..4) {
            0 => pick(&mut self.dice, &["true", "false", "1", "0", "null is null"]).to_string(),
            _ => format!("{} > {}", self.expression(1), self.dice.i8(..)),
        }
    }

    /// A block of the server, which may lack its end.
    fn block(&mut self) {
        self.line("begin;");
        self.branch();
        if self.dice.u8(..) > 12 {
            let end = pick(&mut self.dice, &["end;", "commit;", "rollback;"]);
            self.line(end);
        }
    }

    fn pipeline(&mut self) {
        self.line("\\startpipeline");
        self.pipeline = true;
        self.branch();
        if self.new && self.dice.u8(..) < 60 {
            self.line("\\syncpipeline");
            self.branch();
        }
        self.pipeline = false;
        if self.dice.u8(..) > 12 {
            self.line("\\endpipeline");
        }
    }

    /// A statement, its end included.
    fn sql(&mut self) {
        let value = self.value();
        let statement = match self.dice.u8(0..40) {
            0..12 => format!("insert into t values ({value}::int, 'text');"),
            12..20 => format!("select {value}::numeric, {}::text;", self.value()),
            20..22 => format!("insert into t select g, 'many' from generate_series(1, {}) g;", self.dice.u8(0..9)),
            22..25 => format!("update t set i = {value}::int % 7;"),
            25..26 => "delete from t;".to_owned(),
            26..29 => format!("select flaky({}, '40001');", self.dice.u8(1..4)),
            29..30 => format!("select flaky({}, '40P01');", self.dice.u8(1..4)),
            30..31 => "select flaky(2, '22012');".to_owned(),
            31..32 => "select 1 / 0;".to_owned(),
            32..33 => "select missing;".to_owned(),
            33..34 => "select noisy('notice');".to_owned(),
            34..35 => "savepoint s;".to_owned(),
            35..36 => "select 'two\n  lines', -- comment\n  2;".to_owned(),
            36..37 => "insert into k values (1);".to_owned(),
            37..38 if !self.extended => format!("select 1 \\; insert into t values ({value}::int, 'x');"),
            38..39 => "/* nothing */ ;".to_owned(),
            _ => "select count(*) from t".to_owned() + if self.dice.u8(..) < 20 { "" } else { ";" },
        };
        self.line(&statement);
    }

    /// A statement whose results become variables.
    fn store(&mut self) {
        let value = self.value();
        let first = match self.dice.u8(0..12) {
            0..5 => format!("select {value}::int as a, 2 as b"),
            5..7 => format!("select {value}::numeric as c"),
            7 => "select count(*) as a from t".to_owned(),
            8 => format!("select 1 as b from generate_series(1, {})", self.dice.u8(0..3)),
            9 => "select null as c".to_owned(),
            10 if !self.extended => "select 1 as a \\; select 2 as b".to_owned(),
            _ => "insert into t values (1, 'r') returning i as a".to_owned(),
        };
        let command = pick(&mut self.dice, &["gset", "gset", "gset", "aset", "gset p_"]);
        self.line(&format!("{first} \\{command}"));
    }

    fn variable(&mut self) -> String {
        if self.dice.u8(..) < 8 {
            return ":undefined".to_owned();
        }
        let index = self.dice.usize(..self.variables.len());
        format!(":{}", self.variables[index])
    }

    fn value(&mut self) -> String {
        if self.dice.bool() { self.variable() } else { format!("({})", self.dice.i8(..)) }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || self.dice.u8(..) < 60 {
            return match self.dice.u8(0..12) {
                0..5 => self.variable(),
                5..9 => self.dice.i8(..).to_string(),
                9 => format!("{}.{}", self.dice.i8(..), self.dice.u8(..)),
                10 => pick(&mut self.dice, &["true", "false", "null"]).to_string(),
                _ => pick(&mut self.dice, &["9223372036854775807", "1e10", "0", "1"]).to_string(),
            };
        }
        match self.dice.u8(0..10) {
            0..5 => {
                // Operators that fail for doubles or booleans come less often.
                let index = if self.dice.bool() { self.dice.usize(..4) } else { self.dice.usize(..OPERATORS.len()) };
                format!("({} {} {})", self.expression(depth - 1), OPERATORS[index], self.expression(depth - 1))
            }
            5 => format!("-({})", self.expression(depth - 1)),
            6 => format!(
                "case when {} > 0 then {} else {} end",
                self.expression(depth - 1),
                self.expression(depth - 1),
                self.expression(depth - 1)
            ),
            7 => format!("({} is null)", self.expression(depth - 1)),
            _ => {
                let (name, count) = pick(&mut self.dice, FUNCTIONS);
                let arguments: Vec<String> = (0..count).map(|_| self.expression(depth - 1)).collect();
                format!("{name}({})", arguments.join(", "))
            }
        }
    }
}

/// The text with one small thing wrong.
fn damaged(dice: &mut Rng, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let index = dice.usize(..lines.len());
    let line = &mut lines[index];
    match dice.u8(0..4) {
        0 => drop(lines.remove(index)),
        1 => line.insert_str(0, pick(dice, &["\\endif ", "\\", "(", "'", ": "])),
        2 => line.push_str(pick(dice, &[" )", " x", "'", " \\gset", ";"])),
        _ => {
            let at = dice.usize(..=line.len());
            // All that is written is ASCII.
            line.truncate(at);
        }
    }
    lines.join("\n") + "\n"
}

fn pick<T: Copy>(dice: &mut Rng, choices: &[T]) -> T {
    choices[dice.usize(..choices.len())]
}

#[test]
fn a_seed_gives_one_case() {
    assert_eq!(case(7, 18), case(7, 18));
    assert_ne!(case(7, 18), case(8, 18));
}
