//! A case: the input of both programs, and the comparison of their results. Cases are in
//! `cases/*.txt`.
//!
//! ```text
//! # A comment.
//! == name of the case
//! each M: simple | extended       makes a case of each value, put where $M stands (\n is a
//!                                 line break); repeated, of each combination
//! options: -t 2 -M $M             the command line, as in a shell; repeated: a case of each; default: -t 1
//! script:                         a script, indented by four blanks; adds `-n -f x.sql`
//!     select 1;
//! file y.sql:                     another file; `input:` is standard input
//!     select 2;
//! status: 2                       the real program's exit status, default 0; `any` if values decide
//! says: ERROR:  division by zero  something the real program must say; may be repeated
//! tables: pgbench                 the database has pgbench's tables; default: only those of `server.rs`
//! sql: insert into t values (1)   done in each database before; may be repeated
//! env: PGOPTIONS=-c jit=off       a variable of the environment; may be repeated
//! order: any                      what several clients say, log and do may come in any order
//! numbers: any                    counts depend on time, so that any two numbers are equal
//! statements: any                 what the server was asked needn't be the same
//! versions: 17-                   versions of pgbench to which the case applies; also 15-16, -16
//! ```
//!
//! In all of them `$DATABASE` is the name of the case's database.

use std::ops::RangeInclusive;

/// The input of both programs, and the comparison of their results.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of a case")]
pub struct Case {
    /// The name of the file and the case, and the values of its variables.
    pub name: String,
    /// The command line.
    pub options: String,
    /// Files: names and contents.
    pub files: Vec<(String, String)>,
    /// Standard input.
    pub input: String,
    /// The real program's exit status; `None` if any is valid.
    pub status: Option<i32>,
    /// Texts that the real program must print.
    pub says: Vec<String>,
    /// The database has pgbench's tables.
    pub tables: bool,
    /// Statements executed in each database before.
    pub sql: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Lines may come in any order.
    pub any_order: bool,
    /// Any two numbers are considered equal.
    pub any_numbers: bool,
    /// The statements sent to the server may differ.
    pub any_statements: bool,
    /// The versions of pgbench to which it applies.
    pub versions: RangeInclusive<u32>,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            name: String::new(),
            options: String::new(),
            files: Vec::new(),
            input: String::new(),
            status: Some(0),
            says: Vec::new(),
            tables: false,
            sql: Vec::new(),
            env: Vec::new(),
            any_order: false,
            any_numbers: false,
            any_statements: false,
            versions: 15..=19,
        }
    }
}

impl Case {
    /// Replaces a variable by a value.
    fn put(&self, variable: &str, value: &str) -> Case {
        let put = |text: &String| text.replace(variable, value);
        Case {
            name: put(&self.name),
            options: put(&self.options),
            files: self.files.iter().map(|(name, text)| (name.clone(), put(text))).collect(),
            input: put(&self.input),
            says: self.says.iter().map(put).collect(),
            sql: self.sql.iter().map(put).collect(),
            env: self.env.iter().map(|(name, value)| (name.clone(), put(value))).collect(),
            ..self.clone()
        }
    }

    /// Returns whether it is for certain versions only.
    pub fn is_of_versions(&self) -> bool {
        self.versions != Case::default().versions
    }

    /// The case in a database.
    pub fn in_database(&self, name: &str) -> Case {
        self.put("$DATABASE", name)
    }
}

/// The cases of a file.
///
/// # Panics
/// It has an error; the message names the line.
pub fn read(file: &str, text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    let mut block: Option<Block> = None;
    while let Some((index, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("== ") {
            cases.extend(block.take().into_iter().flat_map(Block::cases));
            let case = Case { name: format!("{file}: {name}"), ..Case::default() };
            block = Some(Block { case, options: Vec::new(), each: Vec::new() });
            continue;
        }
        let mut below = String::new();
        while let Some((_, text)) = lines.next_if(|(_, line)| line.starts_with("    ") || line.is_empty()) {
            below.push_str(text.get(4..).unwrap_or_default());
            below.push('\n');
        }
        let taken = block.as_mut().and_then(|block| block.take(line, &below));
        taken.unwrap_or_else(|| panic!("{file}, line {}: {line}", index + 1));
    }
    cases.extend(block.into_iter().flat_map(Block::cases));
    cases
}

/// The lines below one headline.
struct Block {
    case: Case,
    options: Vec<String>,
    each: Vec<(String, Vec<String>)>,
}

impl Block {
    /// Parses a line and the indented ones below it; `None` if it is unknown.
    fn take(&mut self, line: &str, below: &str) -> Option<()> {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        let below = format!("{}\n", below.trim_end_matches('\n'));
        let case = &mut self.case;
        match key {
            "options" => self.options.push(value.to_owned()),
            "script" => case.files.push(("x.sql".to_owned(), below)),
            "input" => case.input = below,
            "status" if value == "any" => case.status = None,
            "status" => case.status = Some(value.parse().ok()?),
            "says" => case.says.push(value.to_owned()),
            "tables" => case.tables = value == "pgbench",
            "sql" => case.sql.push(value.to_owned()),
            "env" => {
                let (name, value) = value.split_once('=')?;
                case.env.push((name.to_owned(), value.to_owned()));
            }
            "order" => case.any_order = value == "any",
            "numbers" => case.any_numbers = value == "any",
            "statements" => case.any_statements = value == "any",
            "versions" => {
                let (from, to) = value.split_once('-')?;
                let number = |text: &str, default| {
                    if text.is_empty() { Some(default) } else { text.parse().ok() }
                };
                case.versions = number(from, 15)?..=number(to, 19)?;
            }
            _ => match key.split_once(' ')? {
                ("file", name) => case.files.push((name.to_owned(), below)),
                ("each", name) => {
                    let values = value.split(" | ").map(|value| value.trim().replace(r"\n", "\n")).collect();
                    self.each.push((format!("${name}"), values));
                }
                _ => return None,
            },
        }
        Some(())
    }

    /// Its cases: every combination of values and options.
    fn cases(self) -> Vec<Case> {
        let several = self.options.len() > 1;
        let options = if self.options.is_empty() { vec!["-t 1".to_owned()] } else { self.options };
        let has_script = self.case.files.iter().any(|(name, _)| name == "x.sql");
        let mut cases: Vec<Case> = Vec::new();
        for options in options {
            let name = &self.case.name;
            let name = if several { format!("{name} [{options}]") } else { name.clone() };
            let options = if has_script { format!("{options} -n -f x.sql") } else { options };
            cases.push(Case { name, options, ..self.case.clone() });
        }
        for (variable, values) in &self.each {
            let of_each = |case: &Case| -> Vec<Case> {
                assert!(case.put(variable, "") != *case, "{}: {variable} isn't used", case.name);
                let of = |value: &String| {
                    let name = if case.name.contains(variable) {
                        case.name.clone()
                    } else {
                        format!("{} [{}]", case.name, value.replace('\n', r"\n"))
                    };
                    Case { name, ..case.clone() }.put(variable, value)
                };
                values.iter().map(of).collect()
            };
            cases = cases.iter().flat_map(of_each).collect();
        }
        cases
    }
}

#[test]
fn cases_are_read() {
    let cases = read(
        "f",
        "# c\n== a\neach M: x | y\noptions: -M $M\noptions: -r $M\nscript:\n    1\n\n    2\n\nstatus: 2\n",
    );
    assert_eq!(cases.len(), 4);
    assert_eq!(cases[1].name, "f: a [-M y]");
    assert_eq!(cases[1].options, "-M y -n -f x.sql");
    assert_eq!(cases[1].files, [("x.sql".to_owned(), "1\n\n2\n".to_owned())]);
    assert_eq!((cases[3].name.as_str(), cases[3].status), ("f: a [-r y]", Some(2)));
}
