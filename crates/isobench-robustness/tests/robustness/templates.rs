//! Programs as text.
//!
//! A line without indentation starts a branch: `Program` or `Program/branch`, and pairs `a<>b` of
//! variables that differ. An indented line is an operation: a letter, the table, the columns of the
//! row's key in parentheses, other columns that are known in braces, the columns that are read after
//! ` : `, those that are written after ` > `, and the place of the statement after ` @ `. A column `c` is
//! equal to the variable `:c`, unless it says otherwise: `id=1`, `id=:other`.
//!
//! | letter | operation |
//! |---|---|
//! | R | read |
//! | G | search |
//! | L | lock FOR UPDATE |
//! | U | update |
//! | I | insert |
//! | D | delete |

use std::collections::BTreeSet;

use isobench_robustness::{Branch, Columns, Kind, Operation, Program, Strength, Term};

/// Reads programs.
pub fn programs(text: &str) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    while let Some(head) = lines.next() {
        let mut words = head.split_whitespace();
        let name = words.next().expect("a name");
        let (program, branch) = name.split_once('/').unwrap_or((name, ""));
        let mut operations = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            operations.push(operation(line.trim(), program, branch, operations.len()));
        }
        let distinct = words.map(|pair| pair.split_once("<>").expect("a<>b"));
        let branch = distinct
            .fold(Branch::new(branch, operations), |branch, (one, other)| branch.with_distinct(one, other));
        match programs.iter_mut().find(|known| known.name == program) {
            Some(known) => known.branches.push(branch),
            None => programs.push(Program::new(program, vec![branch])),
        }
    }
    programs
}

/// The programs as they are if whole rows are read and written.
pub fn by_rows(programs: &[Program]) -> Vec<Program> {
    let mut programs = programs.to_vec();
    let operations = programs.iter_mut().flat_map(|program| &mut program.branches);
    for operation in operations.flat_map(|branch| &mut branch.operations) {
        for columns in [&mut operation.reads, &mut operation.writes] {
            if !columns.is_empty() {
                *columns = Columns::from(["row"]);
            }
        }
    }
    programs
}

fn operation(line: &str, program: &str, branch: &str, place: usize) -> Operation {
    let (line, at) = line.split_once(" @ ").unwrap_or((line, ""));
    let (line, writes) = line.split_once(" > ").unwrap_or((line, ""));
    let (line, reads) = line.split_once(" : ").unwrap_or((line, ""));
    let (kind, rest) = line.split_once(' ').expect("a letter and a table");
    let table = rest.split(['(', '{']).next().expect("a table").trim();
    let kind = match kind {
        "R" => Kind::Read,
        "G" => Kind::Search,
        "L" => Kind::Lock(Strength::Update),
        "U" => Kind::Update,
        "I" => Kind::Insert,
        "D" => Kind::Delete,
        _ => panic!("{kind}"),
    };
    let at = match at.trim() {
        "" if kind == Kind::Read => format!("{program}:{table}{}", &rest[table.len()..]),
        "" => format!("{program}/{branch}:{place}"),
        at => format!("{program}:{at}"),
    };
    let all = matches!(kind, Kind::Insert | Kind::Delete);
    Operation {
        kind,
        table: table.to_owned(),
        key: terms(rest, '(', ')'),
        known: terms(rest, '{', '}'),
        reads: columns(reads),
        writes: if all { Columns::All } else { columns(writes) },
        changes_key: false,
        statement: 0,
        at: at.as_str().into(),
        newest: false,
        certain: true,
        found: true,
        held: None,
        waits: true,
    }
}

fn columns(text: &str) -> Columns {
    let names: BTreeSet<String> = text.split_whitespace().map(str::to_owned).collect();
    Columns::These(names)
}

fn terms(text: &str, open: char, close: char) -> Vec<(String, Term)> {
    let inside =
        text.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map_or("", |(inside, _)| inside);
    let term = |part: &str| match part.trim().split_once('=') {
        Some((column, term)) => (column.to_owned(), Term::of(term)),
        None => (part.trim().to_owned(), Term::Variable(part.trim().to_owned())),
    };
    inside.split(',').filter(|part| !part.trim().is_empty()).map(term).collect()
}
