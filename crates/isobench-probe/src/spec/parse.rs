//! The parser of test specifications, including the resolution of names.

use super::error::{Position, SpecError, SpecProblem};
use super::lexer::{Token, tokens};
use super::{Marker, Permutation, PermutationStep, SessionSpec, Spec, StepId, StepSpec};

/// The maximum number of notices in a marker. The tester has no such limit; it catches typing
/// errors.
const MOST_NOTICES: u32 = 1_000_000;

type Result<T> = std::result::Result<T, (Position, SpecProblem)>;

/// Parses a specification.
pub fn parse(file: &str, text: &str) -> std::result::Result<Spec, SpecError> {
    let read = || Parser { tokens: tokens(text)?, at: 0 }.spec();
    read().map_err(|(position, problem)| SpecError { file: file.to_owned(), position, problem })
}

struct Parser {
    tokens: Vec<(Position, Token)>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is the end, which is never consumed.
        &self.tokens[self.at].1
    }

    fn position(&self) -> Position {
        self.tokens[self.at].0
    }

    fn next(&mut self) -> (Position, Token) {
        let token = self.tokens[self.at].clone();
        if token.1 != Token::End {
            self.at += 1;
        }
        token
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T> {
        Err((self.position(), SpecProblem::Unexpected { expected, found: self.peek().describe() }))
    }

    /// Consumes this keyword if it is next.
    fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Keyword(found) if *found == word);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = *self.peek() == Token::Sign(sign);
        self.at += usize::from(found);
        found
    }

    fn name(&mut self, expected: &'static str) -> Result<(Position, String)> {
        match self.peek() {
            Token::Name(_) => match self.next() {
                (position, Token::Name(name)) => Ok((position, name)),
                _ => self.unexpected(expected),
            },
            _ => self.unexpected(expected),
        }
    }

    fn sql(&mut self) -> Result<String> {
        match self.peek().clone() {
            Token::Sql(sql) => {
                self.at += 1;
                Ok(sql)
            }
            _ => self.unexpected("an SQL block in braces"),
        }
    }

    /// A keyword and its SQL, if the keyword is next.
    fn block(&mut self, word: &str) -> Result<Option<String>> {
        if self.keyword(word) { self.sql().map(Some) } else { Ok(None) }
    }

    fn spec(mut self) -> Result<Spec> {
        let mut setup = Vec::new();
        while let Some(sql) = self.block("setup")? {
            setup.push(sql);
        }
        let teardown = self.block("teardown")?;
        let mut spec = Spec { setup, teardown, sessions: Vec::new(), given: None };
        while self.keyword("session") {
            let session = self.session(&spec)?;
            spec.sessions.push(session);
        }
        if spec.sessions.is_empty() {
            return self.unexpected("setup, teardown or session");
        }
        let mut permutations = Vec::new();
        while self.keyword("permutation") {
            permutations.push(self.permutation(&spec)?);
        }
        if *self.peek() != Token::End {
            let expected = if permutations.is_empty() {
                "step, teardown, session or permutation"
            } else {
                "the name of a step, a marker or permutation"
            };
            return self.unexpected(expected);
        }
        spec.given = (!permutations.is_empty()).then_some(permutations);
        Ok(spec)
    }

    fn session(&mut self, before: &Spec) -> Result<SessionSpec> {
        let (_, name) = self.name("the name of a session")?;
        let mut session =
            SessionSpec { name, setup: self.block("setup")?, teardown: None, steps: Vec::new() };
        while self.keyword("step") {
            let (position, name) = self.name("the name of a step")?;
            if before.find(&name).is_some() || session.steps.iter().any(|step| step.name == name) {
                return Err((position, SpecProblem::DuplicateStep(name)));
            }
            session.steps.push(StepSpec { name, sql: self.sql()? });
        }
        if session.steps.is_empty() {
            return self.unexpected("step");
        }
        session.teardown = self.block("teardown")?;
        Ok(session)
    }

    fn permutation(&mut self, spec: &Spec) -> Result<Permutation> {
        let mut launches: Permutation = Vec::new();
        // The position of each marker that names a step, and the step that has the marker.
        let mut named = Vec::new();
        while launches.is_empty() || matches!(self.peek(), Token::Name(_)) {
            let (position, name) = self.name("the name of a step")?;
            let step = spec.find(&name).ok_or((position, SpecProblem::UnknownStep(name)))?;
            let mut markers = Vec::new();
            if self.sign('(') {
                loop {
                    let position = self.position();
                    let marker = self.marker(spec, step)?;
                    if let Marker::Step(blocker) | Marker::Notices(blocker, _) = marker {
                        named.push((position, blocker, step));
                    }
                    markers.push(marker);
                    if !self.sign(',') {
                        break;
                    }
                }
                if !self.sign(')') {
                    return self.unexpected("\",\" or \")\"");
                }
            }
            launches.push(PermutationStep { step, markers });
        }
        let absent =
            named.iter().find(|(_, blocker, _)| launches.iter().all(|launch| launch.step != *blocker));
        if let Some(&(position, blocker, step)) = absent {
            let name = |id| spec.step(id).name.clone();
            return Err((position, SpecProblem::AbsentBlocker { blocker: name(blocker), step: name(step) }));
        }
        Ok(launches)
    }

    fn marker(&mut self, spec: &Spec, of: StepId) -> Result<Marker> {
        if self.sign('*') {
            return Ok(Marker::Waiting);
        }
        let (position, blocker) = self.name("\"*\" or the name of a step")?;
        let step = || spec.step(of).name.clone();
        let Some(id) = spec.find(&blocker) else {
            return Err((position, SpecProblem::UnknownBlocker { blocker, step: step() }));
        };
        if id.session == of.session {
            return Err((position, SpecProblem::OwnSession { blocker, step: step() }));
        }
        if !self.keyword("notices") {
            return Ok(Marker::Step(id));
        }
        match self.next() {
            (position, Token::Number(digits)) => match digits.parse() {
                Ok(count @ 1..=MOST_NOTICES) => Ok(Marker::Notices(id, count)),
                _ => Err((position, SpecProblem::Number(digits))),
            },
            (position, other) => {
                let expected = "a number of notices";
                Err((position, SpecProblem::Unexpected { expected, found: other.describe() }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_understood() {
        let text = "session a step a1 { } session b step b1 { } step b2 { }
                    permutation a1 ( * , b1, b2 notices 3 ) b1 b2 permutation b2";
        let spec = Spec::parse("x", text).unwrap();
        let given = spec.given.as_deref().unwrap();
        let (b1, b2) = (StepId { session: 1, step: 0 }, StepId { session: 1, step: 1 });
        assert_eq!(given[0][0].markers, [Marker::Waiting, Marker::Step(b1), Marker::Notices(b2, 3)]);
        assert_eq!(given[1], [PermutationStep { step: b2, markers: Vec::new() }]);
    }

    proptest::proptest! {
        #[test]
        fn no_words_panic(words in proptest::collection::vec("setup|teardown|session|step|permutation|notices|a|b|\\{ \
                                                              x \\}|1|0|99999999999|\\(|\\)|,|\\*", 0..30)) {
            let _ = Spec::parse("x", &words.join(" "));
        }
    }
}
