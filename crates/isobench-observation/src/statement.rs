//! One statement: which rows it reads and writes, and where its text can be extended to show them.

mod aggregates;
mod clauses;
mod command;
mod condition;
mod from;
mod functions;
mod joined;
mod known;
mod order;
mod query;
mod removed;
mod settings;
mod walk;
mod with;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_isolation::observed::{Case, Comparison};
use isobench_script::{RowLimit, SearchValue, SearchWhen, Slot};
use sqlparser::ast::{Ident, ObjectName, Query, SetExpr, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use crate::dark::Dark;
use isobench_sql::{Catalog, RelationId};
use isobench_sql::{Text, folded, may_write};

pub(crate) use removed::Removed;
pub(crate) use settings::{Change, changes};

/// What all scripts of a run do to names and transactions.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// The tables that a script creates, alters or drops, by the last part of their names.
    pub changed: BTreeSet<String>,
    /// True if a script sets savepoints, so that rows may be written by subtransactions.
    pub savepoints: bool,
    /// What scripts may delete, or change the keys of.
    pub removed: Removed,
    /// True if a script changes how times, intervals, amounts of money or the like are printed.
    pub printed: bool,
}

/// What was found of a statement.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub shown: Vec<Shown>,
    pub dark: Vec<Dark>,
    /// The tables that are written without being shown.
    pub unseen: BTreeSet<RelationId>,
    /// True if any table may be written.
    pub writes_anything: bool,
    /// Texts that the shown rows need elsewhere: `WITH (OLD AS …)`.
    pub additions: Vec<(usize, String)>,
    /// Searches whose rows aren't shown, with their tables: what they missed is known only if they
    /// found nothing.
    pub denials: Vec<(RelationId, Search)>,
    /// What the result is limited to.
    pub limit: Option<RowLimit>,
    /// The column of the result, from 0, that has the number of all rows found: `count(*)`.
    pub count: Option<u16>,
}

/// Rows that the result can show.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// The table; for partitions and children, the root.
    pub table: RelationId,
    pub role: Role,
    /// The lists of output columns to extend, from the innermost to the statement's own.
    pub levels: Vec<Level>,
    /// True if the statement's own list needs an aggregate.
    pub packed: Packing,
    /// True if there may be no row: the missing side of an outer join.
    pub nullable: bool,
    /// The name of the replaced row, where the server shows it.
    pub old: Option<&'static str>,
    /// The writer's number where the row has no `xmin`.
    pub transaction: bool,
    /// What the rows were searched by, if others of the table didn't match; the first is what the
    /// statement says, the others are parts of it.
    pub searches: Vec<Search>,
    /// What a subquery is limited to, which has the rows as they are.
    pub page: Option<RowLimit>,
    /// The end of the list of the other branch of a UNION ALL, which has NULLs in place of the row's
    /// columns.
    pub alongside: Option<(usize, &'static str)>,
}

/// How rows come into the statement's own list of output columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// A row for each row of the result.
    Plain,
    /// An array of records.
    Aggregate,
    /// An array of records, by a subquery.
    Subquery,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Read,
    Inserted,
    Updated,
    Deleted,
    Upserted,
    Merged,
}

/// A list of output columns that can be extended.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    /// The place in the text.
    pub at: usize,
    /// What is to be written before the first column.
    pub before: &'static str,
    /// The table or subquery whose columns these are, as written.
    pub qualifier: String,
}

/// What a statement searched for.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    pub key: Option<Vec<SearchValue>>,
    pub condition: Condition,
    /// Rows that are found by their key, and aren't shown: the entry of [`Finding::shown`] that has it in
    /// this column; true if each of them is searched for.
    pub referred: Option<(usize, String, bool)>,
    /// When the result tells that nothing else matched. An entry of [`Finding::shown`] is meant by
    /// its number.
    pub when: SearchWhen,
}

/// A column of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ordered {
    pub name: String,
    pub descending: bool,
    pub nulls_first: bool,
    pub decimal: bool,
}

/// A condition on the columns of a table, by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    True,
    Compare(String, Comparison, SearchValue),
    In(String, Vec<SearchValue>),
    /// Equal to one of the elements of an array. At most one in a condition.
    Among(String, SearchValue),
    /// Equal to the column of one of the rows that an entry of [`Finding::shown`] shows. In place of
    /// `Among`.
    OneOf(String, usize, String),
    IsNull(String),
    Decimal(String, Comparison, SearchValue),
    Like(String, SearchValue, Option<char>),
    /// A text in one case; the value too if `both`; a pattern, or equal.
    Folded {
        name: String,
        case: Case,
        value: SearchValue,
        both: bool,
        pattern: bool,
    },
    /// A row that matches was found, and isn't shown.
    Found(Box<Condition>),
    /// A join has a row of another table for it, which matches.
    Linked {
        table: RelationId,
        /// Columns that must be equal, of this table and of the other.
        pairs: Vec<(String, String)>,
        condition: Box<Condition>,
    },
    /// The row isn't there.
    Absent,
    /// Before the last row that was found, in an order.
    Before(Vec<Ordered>),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

impl Condition {
    /// The number of lists of values that are as long as they are: at most one can be evaluated.
    pub(crate) fn lists(&self) -> usize {
        match self {
            Self::Among(..) | Self::OneOf(..) => 1,
            Self::Not(inner) | Self::Found(inner) => inner.lists(),
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::lists).sum(),
            _ => 0,
        }
    }
}

impl Finding {
    /// The searches with their tables, each with the entry of `shown` that has what was found, if any.
    pub(crate) fn searches(&self) -> impl Iterator<Item = (Option<usize>, RelationId, &Search)> {
        let of_shown = self.shown.iter().enumerate();
        let of_shown = of_shown.flat_map(|(place, shown)| {
            shown.searches.iter().map(move |search| (Some(place), shown.table, search))
        });
        of_shown.chain(self.denials.iter().map(|(table, search)| (None, *table, search)))
    }

    /// Shows nothing after all, for this reason: the statement is sent as written. That it found nothing
    /// is known all the same.
    pub(crate) fn withdraw(&mut self, reason: Dark) {
        self.denials.retain(|(_, search)| matches!(search.when, SearchWhen::Column(..)));
        let alone = self.shown.len() == 1;
        for rows in std::mem::take(&mut self.shown) {
            if rows.role != Role::Read {
                self.unseen.insert(rows.table);
                continue;
            }
            let nothing = match rows.packed {
                Packing::Plain => Some(SearchWhen::Empty),
                // A count of 0.
                Packing::Aggregate => self.count.map(|column| SearchWhen::Column(column, false)),
                Packing::Subquery => None,
            };
            if let (Some(search), Some(when), true) = (rows.searches.into_iter().next(), nothing, alone) {
                self.denials.push((rows.table, Search { when, ..search }));
            }
        }
        self.additions.clear();
        self.dark.push(reason);
    }
}

/// The statement can't be understood, so it must not be extended.
#[derive(Debug)]
pub(crate) struct NotUnderstood;

pub(crate) type Understood<T> = Result<T, NotUnderstood>;

/// The numbers of variables, as SQL text.
pub(crate) type Numbers = BTreeMap<Slot, String>;

/// Examines a statement.
pub(crate) struct Examiner<'a> {
    pub catalog: &'a Catalog,
    pub surroundings: &'a Surroundings,
    pub text: &'a Text<'a>,
    /// The statement's tokens.
    pub range: Range<usize>,
    /// The variables that always have one number.
    numbers: Option<&'a Numbers>,
    pub found: Finding,
    /// The tables whose rows were dealt with, by the first tokens of their names.
    handled: BTreeSet<usize>,
    /// All rows that some list of output columns could show.
    offered: Vec<Shown>,
    /// The first tokens of names where a subquery's or CTE's name may stand alone.
    known_names: BTreeSet<usize>,
}

/// The common table expressions that a query sees, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    ctes: BTreeMap<String, Cte>,
}

#[derive(Debug, Clone)]
pub(crate) struct Cte {
    /// The rows that it can pass on.
    pub passes: Vec<Shown>,
    /// True if it writes.
    pub writes: bool,
}

impl<'a> Examiner<'a> {
    pub(crate) fn new(
        catalog: &'a Catalog,
        surroundings: &'a Surroundings,
        text: &'a Text<'a>,
        range: Range<usize>,
    ) -> Self {
        Self {
            catalog,
            surroundings,
            text,
            range,
            numbers: None,
            found: Finding::default(),
            handled: BTreeSet::new(),
            known_names: BTreeSet::new(),
            offered: Vec::new(),
        }
    }

    /// Tells it the variables that always have one number.
    pub(crate) fn with_numbers(mut self, numbers: &'a Numbers) -> Self {
        self.numbers = Some(numbers);
        self
    }

    /// Examines the statement.
    pub(crate) fn examine(mut self) -> Finding {
        if let Some(found) = self.command() {
            return found;
        }
        self.calls();
        if self.parsed().is_err() {
            // Whatever was found before, the statement stays as written.
            let before = std::mem::take(&mut self.found);
            self.found.dark.push(Dark::NotUnderstood);
            self.found.dark.extend(
                before
                    .dark
                    .into_iter()
                    .filter(|dark| matches!(dark, Dark::Function { .. } | Dark::Operator { .. })),
            );
            self.found.writes_anything = before.writes_anything || may_write(self.text, &self.range);
        }
        self.found
    }

    fn parsed(&mut self) -> Understood<()> {
        let statement = self.parse()?;
        match &statement {
            Statement::Query(query) => self.main_query(query)?,
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => {
                let end = self.range.end;
                let shown = self.write(&statement, end, &Scope::default(), true)?;
                self.found.shown.extend(shown);
            }
            _ => return Err(NotUnderstood),
        }
        self.remaining_tables(&statement);
        self.not_passed();
        Ok(())
    }

    fn parse(&self) -> Understood<Statement> {
        let targets = self.partial_targets();
        let mut tokens: Vec<TokenWithSpan> = self
            .range
            .clone()
            .filter(|place| !self.is_dropped(*place) && !targets.iter().any(|target| target.contains(place)))
            .map(|place| self.text.tokens[place].token.clone())
            .collect();
        tokens.push(TokenWithSpan::new(Token::EOF, Span::empty()));
        let dialect = PostgreSqlDialect {};
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
        let statement = statement(&mut parser).map_err(|_| NotUnderstood)?;
        if parser.peek_token_ref().token == Token::EOF { Ok(statement) } else { Err(NotUnderstood) }
    }

    /// True for what the parser doesn't know: `ONLY` before a table, which is looked for where tables are
    /// resolved; and of locks, whose strength and tables don't matter here, the words `NO KEY` in
    /// `FOR NO KEY UPDATE`, `KEY` in `FOR KEY SHARE`, and all but the first table of `OF`.
    fn is_dropped(&self, place: usize) -> bool {
        let word = |at: usize, keyword: &str| self.range.contains(&at) && self.text.tokens[at].is(keyword);
        let sequence = |first: usize, words: &[&str]| {
            words.iter().enumerate().all(|(offset, keyword)| word(first + offset, keyword))
        };
        let at = |back: usize| place.checked_sub(back);
        at(1).is_some_and(|first| sequence(first, &["for", "no", "key", "update"]))
            || at(2).is_some_and(|first| sequence(first, &["for", "no", "key", "update"]))
            || at(1).is_some_and(|first| sequence(first, &["for", "key", "share"]))
            || self.is_further_name(place)
            || self.is_only(place)
    }

    /// The targets of ON CONFLICT that the parser doesn't know: those with expressions, or of partial
    /// indexes. Without one it may be any of the unique indexes.
    fn partial_targets(&self) -> Vec<Range<usize>> {
        let tokens = &self.text.tokens;
        let open = |place: &usize| {
            self.range.contains(&(place + 2))
                && tokens[*place].is("on")
                && tokens[place + 1].is("conflict")
                && tokens[place + 2].token.token == Token::LParen
        };
        let target = |on: usize| {
            let (start, mut depth) = (on + 2, 0_usize);
            let close = (start..self.range.end).find(|place| {
                match tokens[*place].token.token {
                    Token::LParen => depth += 1,
                    Token::RParen => depth -= 1,
                    _ => {}
                }
                depth == 0
            })?;
            let mut columns = (start + 1..close).zip([false, true].into_iter().cycle());
            let plain = columns.all(|(place, comma)| {
                if comma { tokens[place].token.token == Token::Comma } else { tokens[place].name().is_some() }
            });
            let end = (close + 1..self.range.end).find(|place| tokens[*place].is("do"))?;
            (!plain || end > close + 1).then_some(start..end)
        };
        self.range.clone().filter(open).filter_map(target).collect()
    }

    /// True for the word `ONLY` before a table's name.
    pub(super) fn is_only(&self, place: usize) -> bool {
        let tokens = &self.text.tokens;
        let inside =
            self.range.contains(&place) && self.range.contains(&(place + 1)) && place > self.range.start;
        inside && tokens[place].is("only") && tokens[place + 1].name().is_some() && {
            let before = &tokens[place - 1];
            let words = ["from", "join", "update", "using", "into"];
            before.token.token == Token::Comma || words.iter().any(|word| before.is(word))
        }
    }

    /// True for what follows the first name in `FOR UPDATE OF a, b`.
    fn is_further_name(&self, place: usize) -> bool {
        let tokens = &self.text.tokens;
        let comma = |at: usize| tokens[at].token.token == Token::Comma;
        let mut at = if comma(place) { place } else { place.saturating_sub(1) };
        // Back over pairs of a comma and a name, to `OF`.
        while at >= self.range.start + 3 && comma(at) && tokens[at - 1].name().is_some() {
            if tokens[at - 2].is("of") {
                return tokens[at - 3].is("update") || tokens[at - 3].is("share");
            }
            at -= 2;
        }
        false
    }

    /// The statement's own query, perhaps with data-modifying statements.
    fn main_query(&mut self, query: &Query) -> Understood<()> {
        let end = self.range.end;
        match &*query.body {
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => {
                let scope = self.with(query, &Scope::default())?;
                self.lost_writes(&scope);
                let shown = self.write(statement, end, &scope, false)?;
                self.found.shown.extend(shown);
            }
            _ => {
                let shown = self.query(query, &Scope::default(), true)?;
                self.found.shown.extend(shown);
            }
        }
        Ok(())
    }

    /// The value of `$1`, `$2`, …: a variable, or a parameter of the script's author.
    fn parameter(&self, placeholder: &str) -> Option<SearchValue> {
        let variable = self.text.variable(placeholder).map(SearchValue::Variable);
        variable.or_else(|| self.text.parameter(placeholder).map(SearchValue::Parameter))
    }

    /// The number that a variable always has.
    fn number(&self, placeholder: &str) -> Option<SearchValue> {
        let number = self.numbers?.get(&self.text.variable(placeholder)?)?;
        Some(SearchValue::Constant(number.clone()))
    }

    /// The place of a token as the parser tells it.
    fn token(&self, span: Span) -> Understood<usize> {
        self.text.at(span.start).filter(|place| self.range.contains(place)).ok_or(NotUnderstood)
    }

    /// The relation that a name denotes, with one part or two.
    fn resolved(&self, name: &ObjectName) -> Option<RelationId> {
        let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(ident).collect();
        match parts.as_slice() {
            [name] => self.catalog.resolve(None, name),
            [schema, name] => self.catalog.resolve(Some(schema), name),
            _ => None,
        }
    }

    /// The parts of a name, each with its token.
    fn parts<'n>(&self, name: &'n ObjectName) -> Understood<Vec<(&'n Ident, usize)>> {
        let idents: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
        idents.ok_or(NotUnderstood)?.into_iter().map(|ident| Ok((ident, self.token(ident.span)?))).collect()
    }
}

/// A name as SQL compares it.
pub(crate) fn ident(ident: &Ident) -> String {
    folded(&ident.value, ident.quote_style.is_some())
}

/// Parses a statement that reads or writes rows. Without the parser's entry for all statements the
/// program has no code for any other.
fn statement(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let first = parser.next_token();
    let keyword = match &first.token {
        Token::Word(word) => word.keyword,
        // A query in parentheses.
        Token::LParen => Keyword::SELECT,
        _ => Keyword::NoKeyword,
    };
    match keyword {
        Keyword::INSERT => parser.parse_insert(first),
        Keyword::UPDATE => parser.parse_update(first),
        Keyword::DELETE => parser.parse_delete(first),
        Keyword::MERGE => parser.parse_merge(first).map(Into::into),
        Keyword::SELECT | Keyword::WITH | Keyword::VALUES => {
            parser.prev_token();
            parser.parse_query().map(Into::into)
        }
        _ => parser.expected("a statement on rows", first),
    }
}
