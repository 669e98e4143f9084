//! Reads the parts of a statement: what of it is a value, and what is text.

use isobench_capture::Datum;
use isobench_script::lexer::{Kind, Token, tokens};

use super::item::{Item, Source, Value, folded};

/// Functions whose literals are names of objects or of settings.
const NAMING: [&str; 9] = [
    "nextval",
    "setval",
    "currval",
    "set_config",
    "current_setting",
    "to_regclass",
    "pg_get_serial_sequence",
    "extract",
    "date_part",
];

/// Types that make names of objects of a literal.
const OBJECT_TYPES: [&str; 7] =
    ["regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regconfig"];

/// Types whose name may stand before a literal.
const TYPES: [&str; 14] = [
    "interval",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "json",
    "jsonb",
    "uuid",
    "bytea",
    "numeric",
    "inet",
    "point",
    "xml",
];

/// Types whose parentheses hold modifiers, and no values.
pub const MODIFIED: [&str; 13] = [
    "numeric",
    "decimal",
    "varchar",
    "char",
    "character",
    "varying",
    "bit",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "float",
    "vector",
];

/// Words that may follow the literal of an interval.
const FIELDS: [&str; 6] = ["year", "month", "day", "hour", "minute", "second"];

/// Words that begin a clause.
const CLAUSES: [&str; 18] = [
    "select",
    "from",
    "where",
    "set",
    "values",
    "by",
    "having",
    "on",
    "limit",
    "offset",
    "fetch",
    "returning",
    "for",
    "union",
    "except",
    "intersect",
    "join",
    "using",
];

/// Words after which a sign belongs to the number, and no value stands before a parenthesis.
const KEYWORDS: [&str; 46] = [
    "order",
    "group",
    "select",
    "distinct",
    "all",
    "from",
    "where",
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "ilike",
    "is",
    "case",
    "when",
    "then",
    "else",
    "end",
    "limit",
    "offset",
    "values",
    "set",
    "on",
    "by",
    "having",
    "returning",
    "as",
    "any",
    "some",
    "exists",
    "union",
    "using",
    "into",
    "join",
    "with",
    "array",
    "over",
    "filter",
    "fetch",
    "first",
    "next",
    "only",
    "row",
    "update",
];

/// A token with whether a blank or comment stands before it.
#[derive(Clone, Copy)]
struct Word<'a> {
    token: Token<'a>,
    apart: bool,
}

pub(super) struct Scan<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    parameters: &'a [Option<Datum>],
    /// For each open parenthesis the word before it and the clause within.
    open: Vec<Open>,
    /// The columns of an INSERT.
    columns: Vec<String>,
    inserts: bool,
}

#[derive(Clone, Default)]
struct Open {
    before: String,
    clause: String,
    /// The number of commas in the clause.
    place: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(statement: &'a str, parameters: &'a [Option<Datum>]) -> Scan<'a> {
        let mut words = Vec::new();
        let mut apart = false;
        for token in tokens(statement) {
            if matches!(token.kind, Kind::Blank | Kind::Comment) {
                apart = true;
            } else {
                words.push(Word { token, apart });
                apart = false;
            }
        }
        while words.last().is_some_and(|last: &Word<'_>| last.token.is(";")) {
            words.pop();
        }
        let columns = columns_of_insert(&words);
        let inserts = words.first().is_some_and(|first| first.token.is("insert"));
        Scan { words, at: 0, parameters, open: vec![Open::default()], columns, inserts }
    }

    fn word(&self, at: usize) -> Option<Token<'a>> {
        self.words.get(at).map(|word| word.token)
    }

    fn before(&self, back: usize) -> Option<Token<'a>> {
        self.at.checked_sub(back).and_then(|at| self.word(at))
    }

    fn is_before(&self, back: usize, words: &[&str]) -> bool {
        self.before(back).is_some_and(|token| token.is_any(words))
    }

    fn clause(&self) -> &str {
        self.open.last().map_or("", |open| &open.clause)
    }

    /// Items up to the end, or to a comma or closing bracket of the level where this begins if `within` is its
    /// depth.
    pub(super) fn items(&mut self, within: Option<usize>) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(token) = self.word(self.at) {
            if within == Some(self.open.len()) && token.is_any(&[",", ")", "]"]) {
                break;
            }
            if let Some((value, length)) = self.value(token, &mut items) {
                items.push(Item::Value(value));
                self.at += length;
                continue;
            }
            let tight = self.is_tight();
            let text = if token.kind == Kind::Word && token.is_any(&KEYWORDS) || token.is_any(&CLAUSES) {
                token.text.to_ascii_uppercase()
            } else {
                token.text.to_owned()
            };
            items.push(Item::Text(text, tight));
            let lists = self.begins_list();
            self.pass(token);
            self.at += 1;
            match lists {
                Some(true) => self.list(&mut items),
                Some(false) => self.rows(&mut items),
                None => {}
            }
        }
        items
    }

    /// Whether a list of values (true) or of rows (false) follows the present token.
    fn begins_list(&self) -> Option<bool> {
        let token = self.word(self.at)?;
        let next = self.word(self.at + 1)?;
        let selects = next.is_any(&["select", "with", "values", "table"]);
        if token.is("(") && self.is_before(1, &["in"]) && !selects {
            return Some(true);
        }
        if token.is("[") && self.is_before(1, &["array"]) && !next.is("]") {
            return Some(true);
        }
        (token.is("values") && next.is("(")).then_some(false)
    }

    /// The elements of a list whose bracket was passed, up to the closing one.
    fn list(&mut self, items: &mut Vec<Item>) {
        let depth = self.open.len();
        let mut elements = vec![self.items(Some(depth))];
        while self.word(self.at).is_some_and(|token| token.is(",")) {
            self.at += 1;
            elements.push(self.items(Some(depth)));
        }
        items.push(Item::List(folded(elements)));
    }

    /// Rows in parentheses.
    fn rows(&mut self, items: &mut Vec<Item>) {
        let mut rows = Vec::new();
        loop {
            let from = self.at;
            let depth = self.open.len();
            let mut row = vec![Item::Text("(".to_owned(), false)];
            let Some(open) = self.word(self.at) else { break };
            if !open.is("(") {
                break;
            }
            self.pass(open);
            self.at += 1;
            while self.open.len() > depth && self.word(self.at).is_some() {
                row.extend(self.items(Some(depth + 1)));
                let Some(token) = self.word(self.at) else { break };
                row.push(Item::Text(token.text.to_owned(), true));
                self.pass(token);
                self.at += 1;
            }
            rows.push(row);
            let another = self.word(self.at).is_some_and(|token| token.is(","))
                && self.word(self.at + 1).is_some_and(|token| token.is("("));
            if !another || self.at == from {
                break;
            }
            self.at += 1;
        }
        if !rows.is_empty() {
            items.push(Item::List(folded(rows)));
        }
    }

    /// Goes past a token that is text.
    fn pass(&mut self, token: Token<'_>) {
        match token.text {
            "(" | "[" if token.kind == Kind::Other => {
                let before = self.before(1).and_then(|before| before.name()).unwrap_or_default();
                self.open.push(Open { before, ..Open::default() });
            }
            ")" | "]" if token.kind == Kind::Other && self.open.len() > 1 => drop(self.open.pop()),
            "," => {
                if let Some(open) = self.open.last_mut() {
                    open.place += 1;
                }
            }
            _ => {}
        }
        if token.kind == Kind::Word
            && token.is_any(&CLAUSES)
            && let Some(open) = self.open.last_mut()
        {
            open.clause = token.text.to_ascii_lowercase();
            open.place = 0;
        }
    }

    /// True if no blank belongs before the present token.
    fn is_tight(&self) -> bool {
        let Some(word) = self.words.get(self.at) else { return true };
        let token = word.token;
        let Some(before) = self.before(1) else { return true };
        if token.kind == Kind::Other && [")", ",", ".", "::", "]", ";", "["].contains(&token.text) {
            return true;
        }
        let operator = |token: Token<'_>| {
            token.kind == Kind::Other && !"(),.;[]".contains(token.text) && token.text != "::"
        };
        if operator(before) && operator(token) {
            return !word.apart;
        }
        let called = matches!(before.kind, Kind::Word | Kind::Name) && !before.is_any(&KEYWORDS);
        let into = self.is_before(2, &["into"]) || self.is_before(2, &["."]) && self.inserts;
        token.is("(") && called && !into
    }

    /// The value at the present token, and the number of its tokens. What before it belongs to it is taken off.
    fn value(&self, token: Token<'a>, items: &mut Vec<Item>) -> Option<(Value, usize)> {
        if token.kind == Kind::Parameter {
            let number = token.text[1..].parse::<usize>().ok().filter(|number| *number > 0)?;
            let known = self.parameters.get(number - 1).cloned();
            return Some((self.of(known, Source::Parameter(number), None), 1));
        }
        let names = self.open.iter().any(|open| NAMING.contains(&open.before.as_str()));
        let objects = self.word(self.at + 1).is_some_and(|next| next.is("::"))
            && self
                .word(self.at + 2)
                .and_then(|of| of.name())
                .is_some_and(|of| OBJECT_TYPES.contains(&of.as_str()));
        if names || objects {
            return None;
        }
        match token.kind {
            Kind::Text => self.text_literal(token, items),
            Kind::Number => self.number(token, 1, token.text.to_owned()),
            Kind::Other if token.text == "-" => {
                let next = self.words.get(self.at + 1)?;
                let signs = next.token.kind == Kind::Number && !next.apart && self.begins_operand();
                if signs { self.number(token, 2, format!("-{}", next.token.text)) } else { None }
            }
            Kind::Word if token.is_any(&["null", "true", "false"]) => {
                let assigned = ["set", "values"].contains(&self.clause())
                    || self.inserts && self.open.len() == 2 && self.open[0].clause == "values";
                let stands = self.is_before(1, &["=", "(", ","]);
                let ends = self
                    .word(self.at + 1)
                    .is_none_or(|next| next.is_any(&[",", ")", "where", "returning", "from", "on", "::"]));
                if !(assigned && stands && ends) {
                    return None;
                }
                let known = (!token.is("null")).then(|| Datum::Text(token.text[..1].to_ascii_lowercase()));
                Some((self.literal(known, token.text.to_owned(), None), 1))
            }
            _ => None,
        }
    }

    /// True if an operand begins here, so that a minus is a sign.
    fn begins_operand(&self) -> bool {
        let Some(before) = self.before(1) else { return true };
        match before.kind {
            Kind::Other => !before.is_any(&[")", "]"]),
            Kind::Word => before.is_any(&KEYWORDS),
            _ => false,
        }
    }

    fn literal(&self, known: Option<Datum>, text: String, cast: Option<String>) -> Value {
        self.of(Some(known), Source::Literal(text), cast)
    }

    #[expect(clippy::option_option, reason = "not recorded, NULL, or a value")]
    fn of(&self, known: Option<Option<Datum>>, source: Source, cast: Option<String>) -> Value {
        let compared = self.open.iter().any(|open| ["where", "on", "having"].contains(&open.clause.as_str()));
        Value { known, source, cast, column: self.column(), compared }
    }

    fn number(&self, token: Token<'a>, length: usize, text: String) -> Option<(Value, usize)> {
        let modifies = self.open.last().is_some_and(|open| MODIFIED.contains(&open.before.as_str()));
        let next = self.word(self.at + length);
        let ordinal = self.clause() == "by"
            && self.is_before(1, &["by", ","])
            && next.is_none_or(|next| {
                next.is_any(&[
                    ",", ")", "asc", "desc", "limit", "offset", "nulls", "having", "order", "for", "union",
                ])
            });
        // `t.1` is no number of its own, and neither is one that touches a word.
        let part = token.kind == Kind::Number && self.is_before(1, &["."]);
        if modifies || ordinal || part || !self.is_integer_like(&text) {
            return None;
        }
        let listed = self.clause() == "select" && self.is_before(1, &["select", "distinct", ",", "all"]);
        let whole =
            listed && next.is_none_or(|next| next.is_any(&[",", ")", "as", "from", "where", "union"]));
        let integer = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        let fetches = self.clause() == "fetch";
        let cast = match () {
            () if fetches => Some("bigint".to_owned()),
            () if whole && integer => Some("integer".to_owned()),
            () if whole => Some("numeric".to_owned()),
            () => None,
        };
        Some((self.literal(Some(Datum::Text(text.clone())), text, cast), length))
    }

    /// True for a number as a program writes it.
    #[expect(clippy::unused_self, reason = "one of the questions about a token")]
    fn is_integer_like(&self, text: &str) -> bool {
        text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE_".contains(&byte))
    }

    fn text_literal(&self, token: Token<'a>, items: &mut Vec<Item>) -> Option<(Value, usize)> {
        let text = token.value()?;
        let written = token.text.to_owned();
        if self.is_before(1, &["uescape"]) {
            return None;
        }
        let mut cast = None;
        let mut length = 1;
        if let Some(before) = self.before(1).filter(|before| before.kind == Kind::Word) {
            if before.is("zone") && self.is_before(2, &["time"]) && self.is_before(3, &["with", "without"]) {
                let words: Vec<String> = (0..4)
                    .rev()
                    .filter_map(|back| self.before(back + 1))
                    .map(|word| word.text.to_lowercase())
                    .collect();
                cast = Some(words.join(" "));
                items.truncate(items.len().saturating_sub(4));
            } else if before.is_any(&TYPES) && !self.is_before(2, &["as", "."]) {
                cast = Some(before.text.to_ascii_lowercase());
                items.pop();
            } else if !before.is_any(&KEYWORDS)
                && !before.is_any(&["escape", "zone", "to", "default", "over"])
            {
                return None;
            }
        }
        if cast.as_deref() == Some("interval")
            && let Some(field) = self.word(self.at + 1).filter(|field| field.is_any(&FIELDS))
        {
            cast = Some(format!("interval {}", field.text.to_ascii_lowercase()));
            length = 2;
        }
        let listed = self.clause() == "select" && self.is_before(1, &["select", "distinct", ",", "all"]);
        let ends = |next: Token<'_>| next.is_any(&[",", ")", "as", "from", "where", "union"]);
        if cast.is_none() && listed && self.word(self.at + length).is_none_or(ends) {
            cast = Some("text".to_owned());
        }
        Some((self.literal(Some(Datum::Text(text)), written, cast), length))
    }

    /// The column that the value at the present token is compared with or assigned to.
    fn column(&self) -> Option<String> {
        if self.inserts && self.open.len() == 2 && self.open[0].clause == "values" {
            return self.columns.get(self.open[1].place).cloned();
        }
        let listed = self.open.last().is_some_and(|open| open.before == "in" || open.before == "any");
        let mut at = self.at;
        if listed {
            // Back to the parenthesis, and the word before it.
            let mut depth = 0_usize;
            loop {
                at = at.checked_sub(1)?;
                let token = self.word(at)?;
                match token.text {
                    ")" => depth += 1,
                    "(" if depth == 0 => break,
                    "(" => depth -= 1,
                    _ => {}
                }
            }
            at = at.checked_sub(1)?;
            if self.word(at).is_some_and(|any| any.is("any")) {
                at = at.checked_sub(1)?;
            }
        } else {
            at = at.checked_sub(1)?;
            if !self.word(at)?.is_any(&["=", "<", ">", "<=", ">=", "<>", "!="]) {
                return None;
            }
        }
        let name = self.word(at.checked_sub(1)?)?;
        name.name().filter(|_| !name.is_any(&KEYWORDS))
    }
}

/// The columns that an INSERT names.
fn columns_of_insert(words: &[Word<'_>]) -> Vec<String> {
    if !words.first().is_some_and(|first| first.token.is("insert")) {
        return Vec::new();
    }
    let open = words.iter().position(|word| word.token.is("("));
    let values = words.iter().position(|word| word.token.is_any(&["values", "select", "default"]));
    let Some(open) = open.filter(|open| values.is_none_or(|values| *open < values)) else {
        return Vec::new();
    };
    let list = words[open..].iter().take_while(|word| !word.token.is(")"));
    list.filter_map(|word| word.token.name()).collect()
}
