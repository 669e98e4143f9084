//! A test specification in the language of PostgreSQL's isolation tester.
//!
//! Parsing is in `spec/lexer.rs` and `spec/parse.rs`, running in `tester.rs`. Source: PostgreSQL's
//! `src/test/isolation/README`, and the behaviour of the real program.

mod error;
mod lexer;
mod parse;

pub use self::error::{Position, SpecError, SpecProblem};

/// A test specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// SQL that is sent over the control connection before each permutation, block by block.
    pub setup: Vec<String>,
    /// SQL that is sent over the control connection after each permutation.
    pub teardown: Option<String>,
    /// The sessions, in the order of the text.
    pub sessions: Vec<SessionSpec>,
    /// The permutations in the text; if there are none, all interleavings: see
    /// [`Spec::permutations`].
    pub given: Option<Vec<Permutation>>,
}

/// A session: steps that run over one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpec {
    /// Its name.
    pub name: String,
    /// SQL that is sent over its connection before the steps.
    pub setup: Option<String>,
    /// SQL that is sent over its connection after the steps.
    pub teardown: Option<String>,
    /// Its steps.
    pub steps: Vec<StepSpec>,
}

/// SQL with a name that is unique in the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSpec {
    /// The name.
    pub name: String,
    /// The SQL between the braces, without leading and trailing blanks.
    pub sql: String,
}

/// The position of a step: the indices of its session, and of the step in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    /// Index into [`Spec::sessions`].
    pub session: usize,
    /// Index into [`SessionSpec::steps`].
    pub step: usize,
}

/// An order in which steps are launched.
pub type Permutation = Vec<PermutationStep>;

/// A step in a permutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermutationStep {
    /// The step.
    pub step: StepId,
    /// The conditions for reporting its completion.
    pub markers: Vec<Marker>,
}

/// A condition that delays reporting the completion of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// `*`: it is reported as waiting once, even if it completes immediately.
    Waiting,
    /// Another active step has to complete first.
    Step(StepId),
    /// Another step's session has to send this many notices first, counted from the launch.
    Notices(StepId, u32),
}

impl Spec {
    /// The same specification with set-up, teardown and steps replaced by the result of `change`.
    #[must_use]
    pub fn with_sql(mut self, change: impl Fn(&str) -> String) -> Spec {
        let sessions = self.sessions.iter_mut();
        let of_sessions = sessions.flat_map(|session| {
            let steps = session.steps.iter_mut().map(|step| &mut step.sql);
            session.setup.iter_mut().chain(&mut session.teardown).chain(steps)
        });
        for sql in self.setup.iter_mut().chain(&mut self.teardown).chain(of_sessions) {
            *sql = change(sql);
        }
        self
    }

    /// Parses a specification; `file` is the name in messages.
    ///
    /// # Errors
    /// The position and the reason of a syntax error.
    pub fn parse(file: &str, text: &str) -> Result<Spec, SpecError> {
        parse::parse(file, text)
    }

    /// The step with this id.
    pub fn step(&self, id: StepId) -> &StepSpec {
        &self.sessions[id.session].steps[id.step]
    }

    /// The id of the step with this name.
    pub fn find(&self, name: &str) -> Option<StepId> {
        self.sessions.iter().enumerate().find_map(|(session, candidate)| {
            let step = candidate.steps.iter().position(|step| step.name == name)?;
            Some(StepId { session, step })
        })
    }

    /// The permutations to run: the given ones, or all interleavings that keep each session's
    /// order, the first session's steps first. Their number grows exponentially, so they are
    /// generated one by one.
    pub fn permutations(&self) -> Box<dyn Iterator<Item = Permutation> + '_> {
        match &self.given {
            Some(given) => Box::new(given.iter().cloned()),
            None => Box::new(Interleavings {
                counts: self.sessions.iter().map(|session| session.steps.len()).collect(),
                next: Some(
                    self.sessions
                        .iter()
                        .enumerate()
                        .flat_map(|(index, session)| std::iter::repeat_n(index, session.steps.len()))
                        .collect(),
                ),
            }),
        }
    }

    /// The names of steps that no permutation launches, in order.
    pub fn unused(&self) -> Vec<&str> {
        let Some(given) = &self.given else { return Vec::new() };
        let launched = |id| given.iter().flatten().any(|launch| launch.step == id);
        let mut unused = Vec::new();
        for (session, candidate) in self.sessions.iter().enumerate() {
            for (step, found) in candidate.steps.iter().enumerate() {
                if !launched(StepId { session, step }) {
                    unused.push(found.name.as_str());
                }
            }
        }
        unused.sort_unstable();
        unused
    }
}

/// All interleavings, in lexicographic order of the sessions' numbers.
struct Interleavings {
    counts: Vec<usize>,
    /// The sessions of the next interleaving's steps.
    next: Option<Vec<usize>>,
}

impl Iterator for Interleavings {
    type Item = Permutation;

    fn next(&mut self) -> Option<Permutation> {
        let sessions = self.next.take()?;
        let mut taken = vec![0; self.counts.len()];
        let launches = sessions.iter().map(|&session| {
            let step = taken[session];
            taken[session] += 1;
            PermutationStep { step: StepId { session, step }, markers: Vec::new() }
        });
        let permutation = launches.collect();
        self.next = following(sessions);
        Some(permutation)
    }
}

/// The next permutation of the numbers in lexicographic order.
fn following(mut numbers: Vec<usize>) -> Option<Vec<usize>> {
    let rise = numbers.windows(2).rposition(|pair| pair[0] < pair[1])?;
    let partner = numbers.iter().rposition(|&number| number > numbers[rise])?;
    numbers.swap(rise, partner);
    numbers[rise + 1..].reverse();
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleavings_keep_each_sessions_order() {
        let text = "session s1 step a { } step b { } session s2 step c { } step d { }";
        let spec = Spec::parse("x", text).unwrap();
        let names: Vec<String> = spec
            .permutations()
            .map(|steps| steps.iter().map(|launch| spec.step(launch.step).name.as_str()).collect())
            .collect();
        assert_eq!(names, ["abcd", "acbd", "acdb", "cabd", "cadb", "cdab"]);
    }

    #[test]
    fn steps_that_nobody_launches_are_found() {
        let spec = Spec::parse("x", "session s step a { } step b { } permutation a a").unwrap();
        assert_eq!(spec.unused(), ["b"]);
        assert_eq!(spec.find("b"), Some(StepId { session: 0, step: 1 }));
    }
}
