//! Random scripts of the language, most of them valid, with random options. The same seed gives the
//! same case.

use fastrand::Rng;

use crate::case::Case;

/// The state of a script's generator: the dice, the text, and the constructs allowed at this place.
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own")]
struct Writer {
    dice: Rng,
    text: String,
    /// Names of variables that exist.
    variables: Vec<String>,
    /// Inside a transaction block.
    block: bool,
    /// The script is for the extended protocol, so pipelines are allowed.
    extended: bool,
    /// Inside a pipeline, where results can't be stored.
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
        block: false,
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

/// Options, and their frequency in 256 cases.
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
    ("pi", 0),
];

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
            28..38 if self.depth < 3 => self.conditional(),
            38..46 if self.depth < 3 && !self.pipeline => self.block(),
            46..58 if !self.pipeline || self.dice.u8(..) < 20 => self.store(),
            58..68 if self.extended && !self.pipeline && self.depth < 3 => self.pipeline(),
            68..70 => self.line("\\sleep 0"),
            70 => self.line("-- a comment :v"),
            71 => self.line(""),
            72 if self.pipeline && self.new || self.dice.u8(..) < 20 => self.line("\\syncpipeline"),
            73 => self.line("\\shell true"),
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
        let condition = self.truth(1);
        self.line(&format!("\\if {condition}"));
        self.branch();
        if self.dice.bool() {
            let condition = self.truth(1);
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

    /// A transaction block, possibly without its end.
    fn block(&mut self) {
        self.line("begin;");
        self.block = true;
        self.branch();
        self.block = false;
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

    /// A statement, including its end.
    fn sql(&mut self) {
        let value = self.value();
        let statement = match self.dice.u8(0..40) {
            0..12 => format!("insert into t values ({value}::numeric::int, 'text');"),
            12..20 => format!("select {value}::numeric, {}::text;", self.value()),
            20..22 => {
                format!("insert into t select g, 'many' from generate_series(1, {}) g;", self.dice.u8(0..9))
            }
            22..25 => format!("update t set i = {value}::numeric::int % 7;"),
            25..26 => "delete from t;".to_owned(),
            26..29 => format!("select flaky({}, '40001');", self.dice.u8(1..4)),
            29..30 => format!("select flaky({}, '40P01');", self.dice.u8(1..4)),
            30 if self.dice.bool() => "select flaky(2, '22012');".to_owned(),
            31 if self.dice.bool() => pick(&mut self.dice, &["select 1 / 0;", "select missing;"]).to_owned(),
            32 => "\\set d random(1, 100000)".to_owned(),
            33..34 => "select noisy('notice');".to_owned(),
            34 if self.block => "savepoint s;".to_owned(),
            35..36 => "select 'two\n  lines', -- comment\n  2;".to_owned(),
            36..37 => "insert into k select coalesce(max(i), 0) + 1 from k;".to_owned(),
            37..38 if !self.extended => {
                format!("select 1 \\; insert into t values ({value}::numeric::int, 'x');")
            }
            38..39 => "/* nothing */ ;".to_owned(),
            _ => "select count(*) from t".to_owned() + if self.dice.u8(..) < 20 { "" } else { ";" },
        };
        self.line(&statement);
    }

    /// A statement whose results become variables.
    fn store(&mut self) {
        let value = self.value();
        let first = match self.dice.u8(0..12) {
            0..5 => format!("select {value}::numeric::int as a, 2 as b"),
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
        if self.dice.u8(..) < 2 {
            return ":undefined".to_owned();
        }
        let index = self.dice.usize(..self.variables.len());
        format!(":{}", self.variables[index])
    }

    fn value(&mut self) -> String {
        if self.dice.bool() { self.variable() } else { format!("({})", self.dice.i8(..)) }
    }

    /// An expression that is mostly a number.
    fn expression(&mut self, depth: usize) -> String {
        if self.dice.u8(..) < 4 {
            return self.truth(depth);
        }
        if depth == 0 || self.dice.u8(..) < 60 {
            return match self.dice.u8(0..30) {
                0..14 => self.variable(),
                14..24 => self.dice.i8(..).to_string(),
                24..28 => format!("{}.{}", self.dice.i8(..), self.dice.u8(..)),
                _ => pick(&mut self.dice, &["9223372036854775807", "1e10", "0", "null"]).to_owned(),
            };
        }
        let below = depth - 1;
        match self.dice.u8(0..12) {
            0..5 => {
                let operator = pick(&mut self.dice, &["+", "-", "*", "/"]);
                format!("({} {operator} {})", self.expression(below), self.expression(below))
            }
            5 => {
                let operator = pick(&mut self.dice, &["%", "<<", ">>", "&", "|", "#"]);
                format!("(int({}) {operator} {})", self.expression(below), self.dice.u8(1..9))
            }
            6 => format!("-({})", self.expression(below)),
            8 => match self.dice.u8(0..4) {
                0 => format!("random_zipfian(1, {}, 1.2)", self.dice.u8(2..)),
                1 => format!("permute(int({}), {}, 7)", self.expression(below), self.dice.u8(2..)),
                2 => format!("random_gaussian(-5, {}, 2.5)", self.dice.u8(..)),
                _ => format!("random({}, 1000)", self.dice.i8(..)),
            },
            7 => {
                let (truth, number) = (self.truth(below), self.expression(below));
                format!("case when {truth} then {number} else {} end", self.expression(below))
            }
            _ => {
                let (name, count) = pick(&mut self.dice, FUNCTIONS);
                let arguments: Vec<String> = (0..count).map(|_| self.expression(below)).collect();
                format!("{name}({})", arguments.join(", "))
            }
        }
    }

    /// An expression that is mostly a boolean.
    fn truth(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        match self.dice.u8(0..10) {
            0 => pick(&mut self.dice, &["true", "false"]).to_owned(),
            1 => format!("{} is null", self.expression(below)),
            2 if depth > 0 => format!("(not {})", self.truth(below)),
            3 if depth > 0 => {
                let operator = pick(&mut self.dice, &["and", "or"]);
                format!("({} {operator} {})", self.truth(below), self.truth(below))
            }
            _ => {
                let operator = pick(&mut self.dice, &["=", "<>", "<", ">", "<=", ">="]);
                format!("{} {operator} {}", self.expression(below), self.expression(below))
            }
        }
    }
}

/// The text with one small error.
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
            // All text is ASCII.
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
