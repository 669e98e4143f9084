//! The statements in the body of a function, as texts that the server can be asked about.
//!
//! Of PL/pgSQL (manual, "Basic Statements" and "Control Structures") static SQL, expressions, conditions and loops are
//! read. An expression is the query that PL/pgSQL makes of it. A body with anything else has no statements:
//! `EXECUTE`, `EXCEPTION`, cursors, ends of transactions.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use crate::text::{Placed, placed};

/// The statements of a body, and the variables that they may name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// The texts, in order. Each may run any number of times.
    pub statements: Vec<String>,
    /// Names and types, as written. Those of records aren't among them.
    pub variables: Vec<(String, String)>,
}

/// First words of statements of SQL.
const SQL: [&str; 7] = ["delete", "insert", "merge", "select", "update", "values", "with"];

impl Body {
    /// Reads a body in PL/pgSQL. `None` if it may do more.
    pub(super) fn of_plpgsql(source: &str) -> Option<Body> {
        let tokens = placed(source)?;
        let mut reader = Reader { source, tokens: &tokens, at: 0, body: Body::default() };
        reader.label()?;
        if reader.is("declare") || reader.is("begin") {
            reader.at += 1;
            reader.block()?;
        }
        (reader.at == tokens.len() && !tokens.is_empty()).then_some(reader.body)
    }

    /// Reads a body of SQL: statements, `BEGIN ATOMIC … END`, or `RETURN …`.
    pub(super) fn of_sql(source: &str) -> Option<Body> {
        let tokens = placed(source)?;
        let mut reader = Reader { source, tokens: &tokens, at: 0, body: Body::default() };
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
        if is(0, "return") {
            reader.expression(1..tokens.len());
            return Some(reader.body);
        }
        let atomic = is(0, "begin") && is(1, "atomic");
        let mut end = tokens.len();
        if atomic {
            reader.at = 2;
            end = tokens.iter().rposition(|token| token.is("end"))?;
        }
        while reader.at < end {
            let from = reader.at;
            let statement = reader.up_to(|token| token.token.token == Token::SemiColon);
            let range = statement.unwrap_or_else(|| {
                reader.at = end;
                from..end
            });
            let range = range.start..range.end.min(end);
            match tokens.get(range.start).filter(|_| !range.is_empty()) {
                None => {}
                Some(first) if SQL.iter().any(|word| first.is(word)) => {
                    let text = reader.text(&range);
                    reader.body.statements.push(text);
                }
                Some(_) => return None,
            }
        }
        Some(reader.body)
    }
}

struct Reader<'a> {
    source: &'a str,
    tokens: &'a [Placed],
    at: usize,
    body: Body,
}

impl Reader<'_> {
    fn is(&self, word: &str) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.is(word))
    }

    fn is_token(&self, at: usize, token: &Token) -> bool {
        self.tokens.get(at).is_some_and(|one| one.token.token == *token)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.is(word).then(|| self.at += 1)
    }

    fn token(&mut self, token: &Token) -> Option<()> {
        self.is_token(self.at, token).then(|| self.at += 1)
    }

    fn text(&self, range: &Range<usize>) -> String {
        let (first, last) = (self.tokens.get(range.start), self.tokens.get(range.end.wrapping_sub(1)));
        let bytes = first.zip(last).filter(|_| !range.is_empty());
        bytes.map_or(String::new(), |(first, last)| self.source[first.range.start..last.range.end].to_owned())
    }

    /// The tokens before the next one that ends them, outside of parentheses and CASE; goes past that one.
    fn up_to(&mut self, ends: impl Fn(&Placed) -> bool) -> Option<Range<usize>> {
        let from = self.at;
        let end = self.next(from..self.tokens.len(), ends)?;
        self.at = end + 1;
        Some(from..end)
    }

    /// The place of the first token of a range for which this is true, outside of parentheses and CASE.
    fn next(&self, range: Range<usize>, is: impl Fn(&Placed) -> bool) -> Option<usize> {
        let (mut depth, mut cases) = (0_usize, 0_usize);
        for at in range {
            let token = &self.tokens[at];
            if depth == 0 && cases == 0 && is(token) {
                return Some(at);
            }
            match token.token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
                _ if token.is("case") => cases += 1,
                _ if token.is("end") => cases = cases.saturating_sub(1),
                _ => {}
            }
        }
        None
    }

    /// The parts of a range between commas.
    fn listed(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let (mut found, mut from) = (Vec::new(), range.start);
        while let Some(comma) = self.next(from..range.end, |token| token.token.token == Token::Comma) {
            found.push(from..comma);
            from = comma + 1;
        }
        found.push(from..range.end);
        found
    }

    fn up_to_semicolon(&mut self) -> Option<Range<usize>> {
        self.up_to(|token| token.token.token == Token::SemiColon)
    }

    /// Notes an expression.
    fn expression(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.body.statements.push(format!("SELECT {}", self.text(&range)));
        }
    }

    /// Notes a statement of SQL, without the variables that get its result.
    fn sql(&mut self, range: &Range<usize>) -> Option<()> {
        let is_target = |at: usize| {
            let before = at.checked_sub(1).map(|before| &self.tokens[before]);
            self.tokens[at].is("into")
                && !before.is_some_and(|before| before.is("insert") || before.is("merge"))
        };
        let mut targets = range.clone().filter(|at| is_target(*at));
        let text = match (targets.next(), targets.next()) {
            (None, _) => self.text(range),
            (Some(into), None) => {
                let after = self.after_targets(into + 1)?;
                format!("{} {}", self.text(&(range.start..into)), self.text(&(after..range.end)))
            }
            _ => return None,
        };
        self.body.statements.push(text);
        Some(())
    }

    /// The place after the variables that begin at one.
    fn after_targets(&self, mut at: usize) -> Option<usize> {
        let is_strict = self.tokens.get(at)?.is("strict");
        at += usize::from(is_strict && self.tokens.get(at + 1)?.name().is_some());
        loop {
            self.tokens.get(at)?.name()?;
            at += 1;
            while self.is_token(at, &Token::Period) {
                self.tokens.get(at + 1)?.name()?;
                at += 2;
            }
            // An element of an array.
            if self.is_token(at, &Token::LBracket) {
                return None;
            }
            if !self.is_token(at, &Token::Comma) {
                return Some(at);
            }
            at += 1;
        }
    }

    fn label(&mut self) -> Option<()> {
        if self.token(&Token::ShiftLeft).is_some() {
            self.at += 1;
            self.token(&Token::ShiftRight)?;
        }
        Some(())
    }

    /// A block behind its first word.
    fn block(&mut self) -> Option<()> {
        if self.tokens[self.at - 1].is("declare") {
            while self.word("begin").is_none() {
                // DECLARE may be said again.
                if self.word("declare").is_none() {
                    self.declaration()?;
                }
            }
        }
        self.statements()?;
        self.word("end")?;
        self.end_of_block();
        Some(())
    }

    /// A label and a semicolon, neither of which has to be there.
    fn end_of_block(&mut self) {
        if self.tokens.get(self.at).is_some_and(|token| token.name().is_some()) {
            self.at += 1;
        }
        let _ = self.token(&Token::SemiColon);
    }

    fn declaration(&mut self) -> Option<()> {
        let range = self.up_to_semicolon()?;
        let name = self.tokens.get(range.start)?.name()?;
        let mut from = range.start + 1;
        from += usize::from(self.tokens.get(from)?.is("constant"));
        let is_cursor = range.clone().skip(1).take(3).any(|at| self.tokens[at].is("cursor"));
        if self.tokens[from].is("alias") || is_cursor {
            return None;
        }
        let begins = |token: &Placed| {
            matches!(token.token.token, Token::Assignment | Token::Eq)
                || ["default", "not", "collate"].iter().any(|word| token.is(word))
        };
        let end = self.next(from..range.end, begins).unwrap_or(range.end);
        let is_value = |token: &Placed| {
            matches!(token.token.token, Token::Assignment | Token::Eq) || token.is("default")
        };
        if let Some(value) = self.next(end..range.end, is_value) {
            self.expression(value + 1..range.end);
        }
        let percent = (from..end).find(|at| self.is_token(*at, &Token::Mod));
        let of_type = match percent {
            Some(percent) if self.tokens.get(percent + 1)?.is("rowtype") => self.text(&(from..percent)),
            // That of a variable, which has no name for the server.
            Some(percent) if percent == from + 1 => return Some(()),
            _ => self.text(&(from..end)),
        };
        if !self.tokens[from].is("record") {
            self.body.variables.push((name, of_type));
        }
        Some(())
    }

    /// Statements up to a word that ends them.
    fn statements(&mut self) -> Option<()> {
        while !["end", "elsif", "elseif", "else", "when"].iter().any(|word| self.is(word)) {
            self.label()?;
            self.statement()?;
        }
        Some(())
    }

    fn statement(&mut self) -> Option<()> {
        let from = self.at;
        let first = self.tokens.get(from)?.word().map(str::to_ascii_lowercase).unwrap_or_default();
        self.at += 1;
        match first.as_str() {
            "null" => self.token(&Token::SemiColon),
            "return" => self.returned(),
            "raise" => self.raised(),
            "perform" => {
                let range = self.up_to_semicolon()?;
                self.expression(range);
                Some(())
            }
            "if" => self.condition(),
            "case" => self.cases(),
            "loop" => self.body_of_loop(),
            "while" => {
                let range = self.up_to(|token| token.is("loop"))?;
                self.expression(range);
                self.body_of_loop()
            }
            "for" => self.for_loop(),
            "foreach" => {
                self.up_to(|token| token.is("array"))?;
                let range = self.up_to(|token| token.is("loop"))?;
                self.expression(range);
                self.body_of_loop()
            }
            "exit" | "continue" => {
                let range = self.up_to_semicolon()?;
                if let Some(when) = self.next(range.clone(), |token| token.is("when")) {
                    self.expression(when + 1..range.end);
                }
                Some(())
            }
            "get" => self.up_to_semicolon().map(drop),
            "assert" => {
                let range = self.up_to_semicolon()?;
                self.listed(range).into_iter().for_each(|one| self.expression(one));
                Some(())
            }
            "begin" | "declare" => self.block(),
            word if SQL.contains(&word) => {
                self.at = from;
                let range = self.up_to_semicolon()?;
                self.sql(&range)
            }
            _ => {
                self.at = from;
                self.assignment()
            }
        }
    }

    fn returned(&mut self) -> Option<()> {
        let query = self.word("query").is_some();
        if query && self.is("execute") {
            return None;
        }
        if !query {
            let _ = self.word("next");
        }
        let range = self.up_to_semicolon()?;
        if query {
            return self.sql(&range);
        }
        self.expression(range);
        Some(())
    }

    /// `RAISE` with the values in its message and of its options.
    fn raised(&mut self) -> Option<()> {
        let range = self.up_to_semicolon()?;
        let using = self.next(range.clone(), |token| token.is("using"));
        let values = self.listed(range.start..using.unwrap_or(range.end));
        values.into_iter().skip(1).for_each(|value| self.expression(value));
        for option in using.map_or(Vec::new(), |using| self.listed(using + 1..range.end)) {
            if !matches!(self.tokens.get(option.start + 1)?.token.token, Token::Eq | Token::Assignment) {
                return None;
            }
            self.expression(option.start + 2..option.end);
        }
        Some(())
    }

    /// What follows `IF`.
    fn condition(&mut self) -> Option<()> {
        loop {
            let range = self.up_to(|token| token.is("then"))?;
            self.expression(range);
            self.statements()?;
            if self.word("elsif").is_none() && self.word("elseif").is_none() {
                break;
            }
        }
        if self.word("else").is_some() {
            self.statements()?;
        }
        self.word("end")?;
        self.word("if")?;
        self.token(&Token::SemiColon)
    }

    /// What follows `CASE` as a statement.
    fn cases(&mut self) -> Option<()> {
        let compared = self.up_to(|token| token.is("when"))?;
        loop {
            let range = self.up_to(|token| token.is("then"))?;
            if compared.is_empty() {
                self.expression(range);
            } else {
                for value in self.listed(range) {
                    let (one, other) = (self.text(&compared), self.text(&value));
                    self.body.statements.push(format!("SELECT ({one}) = ({other})"));
                }
            }
            self.statements()?;
            if self.word("when").is_none() {
                break;
            }
        }
        if self.word("else").is_some() {
            self.statements()?;
        }
        self.word("end")?;
        self.word("case")?;
        self.token(&Token::SemiColon)
    }

    /// The statements behind `LOOP`.
    fn body_of_loop(&mut self) -> Option<()> {
        self.statements()?;
        self.word("end")?;
        self.word("loop")?;
        self.end_of_block();
        Some(())
    }

    /// What follows `FOR`: a loop over numbers or over a query.
    fn for_loop(&mut self) -> Option<()> {
        let target = self.up_to(|token| token.is("in"))?;
        let _ = self.word("reverse");
        let range = self.up_to(|token| token.is("loop"))?;
        let first = self.tokens.get(range.start)?;
        let queries = SQL.iter().any(|word| first.is(word)) || first.token.token == Token::LParen;
        let text = self.text(&range);
        match text.split_once("..") {
            Some((lower, rest)) => {
                let (upper, step) = match self.next(range.clone(), |token| token.is("by")) {
                    Some(by) => (rest.strip_suffix(&self.text(&(by..range.end)))?, Some(by)),
                    None => (rest, None),
                };
                if upper.contains("..") {
                    return None;
                }
                self.body.statements.extend([format!("SELECT {lower}"), format!("SELECT {upper}")]);
                self.expression(step.map_or(0..0, |by| by + 1..range.end));
                let name = self.tokens.get(target.start)?.name()?;
                self.body.variables.push((name, "pg_catalog.int4".to_owned()));
            }
            None if queries => self.sql(&range)?,
            None => return None,
        }
        self.body_of_loop()
    }

    /// A variable, a field or an element that gets a value.
    fn assignment(&mut self) -> Option<()> {
        let range = self.up_to_semicolon()?;
        let is_sign = |token: &Placed| matches!(token.token.token, Token::Assignment | Token::Eq);
        let sign = self.next(range.clone(), is_sign)?;
        let mut at = range.start;
        self.tokens.get(at)?.name()?;
        at += 1;
        while at < sign {
            if self.is_token(at, &Token::LBracket) {
                let close = (at..sign).rfind(|end| self.is_token(*end, &Token::RBracket))?;
                self.expression(at + 1..close);
                at = close + 1;
            } else {
                // Two names in sequence are another statement.
                self.is_token(at, &Token::Period).then_some(())?;
                self.tokens.get(at + 1)?.name()?;
                at += 2;
            }
        }
        self.expression(sign + 1..range.end);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(source: &str) -> Option<Vec<String>> {
        Body::of_plpgsql(source).map(|body| body.statements)
    }

    #[test]
    fn static_statements_and_expressions_are_found() {
        let body = Body::of_plpgsql(
            "<<outer>> DECLARE n int := (SELECT 1); c CONSTANT t.v%TYPE DEFAULT 2; r record; row t%ROWTYPE;\n\
             BEGIN\n IF n > CASE WHEN $1 THEN 1 ELSE 2 END THEN\n  SELECT a, b INTO STRICT n, row.v FROM t WHERE id = $1;\n\
              ELSIF EXISTS (SELECT FROM u) THEN NULL;\n ELSE n := count(*) FROM t;\n END IF;\n\
              FOR i IN REVERSE 1..n BY 2 LOOP UPDATE t SET v = i; END LOOP;\n\
              FOR row IN SELECT * FROM u LOOP CONTINUE WHEN row.v = 1; PERFORM f(row.v); END LOOP outer;\n\
              WITH x AS (INSERT INTO t VALUES (1) RETURNING v) SELECT v INTO n FROM x;\n\
              RAISE NOTICE 'n % %', n, (SELECT 3) USING HINT = 'h' || n;\n\
              CASE n WHEN 1, 2 THEN RETURN 4; ELSE RETURN QUERY SELECT 5; END CASE;\n\
              a[n] := 6; RETURN; END outer;",
        )
        .expect("a body");
        let expected = [
            "SELECT (SELECT 1)",
            "SELECT 2",
            "SELECT n > CASE WHEN $1 THEN 1 ELSE 2 END",
            "SELECT a, b FROM t WHERE id = $1",
            "SELECT EXISTS (SELECT FROM u)",
            "SELECT count(*) FROM t",
            "SELECT 1",
            "SELECT n",
            "SELECT 2",
            "UPDATE t SET v = i",
            "SELECT * FROM u",
            "SELECT row.v = 1",
            "SELECT f(row.v)",
            "WITH x AS (INSERT INTO t VALUES (1) RETURNING v) SELECT v FROM x",
            "SELECT n",
            "SELECT (SELECT 3)",
            "SELECT 'h' || n",
            "SELECT (n) = (1)",
            "SELECT (n) = (2)",
            "SELECT 4",
            "SELECT 5",
            "SELECT n",
            "SELECT 6",
        ];
        let plain = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(body.statements.iter().map(plain).collect::<Vec<_>>(), expected);
        let names: Vec<&str> = body.variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["n", "c", "row", "i"]);
        assert_eq!(body.variables[2].1, "t");
    }

    #[test]
    fn a_body_with_anything_else_has_no_statements() {
        for source in [
            "BEGIN EXECUTE 'x'; END",
            "BEGIN RETURN QUERY EXECUTE 'x'; END",
            "BEGIN FOR r IN EXECUTE 'x' LOOP NULL; END LOOP; END",
            "BEGIN UPDATE t SET v = 1; EXCEPTION WHEN others THEN NULL; END",
            "BEGIN COMMIT; END",
            "BEGIN CALL p(); END",
            "BEGIN LOCK TABLE t; END",
            "BEGIN TRUNCATE t; END",
            "BEGIN CREATE TABLE t (v int); END",
            "DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; END",
            "BEGIN OPEN c FOR SELECT v = 1; END",
            "BEGIN SET a = 1; END",
            "BEGIN FETCH c INTO v; END",
            "BEGIN FOR r IN c LOOP NULL; END LOOP; END",
            "DECLARE a ALIAS FOR $1; BEGIN NULL; END",
            "#variable_conflict use_variable\nBEGIN NULL; END",
            "BEGIN UPDATE t SET v = 1",
            "BEGIN NULL; END; DROP TABLE t",
            "BEGIN SELECT 1 INTO a FROM (SELECT 2 INTO b) x; END",
            "",
        ] {
            assert_eq!(statements(source), None, "{source}");
        }
    }

    #[test]
    fn bodies_of_sql_are_split() {
        let of = |source: &str| Body::of_sql(source).map(|body| body.statements);
        let two = Some(vec!["SELECT 1".to_owned(), "UPDATE t SET v = $1".to_owned()]);
        assert_eq!(of("SELECT 1; UPDATE t SET v = $1;"), two);
        assert_eq!(of("BEGIN ATOMIC\n SELECT 1;\n UPDATE t SET v = $1;\nEND"), two);
        assert_eq!(of("RETURN (SELECT 1)"), Some(vec!["SELECT (SELECT 1)".to_owned()]));
        assert_eq!(of("SELECT 1; TRUNCATE t"), None);
        assert_eq!(of(""), Some(Vec::new()));
    }
}
