//! A test specification in the language of PostgreSQL's isolation tester: what it is once it has
//! been read.
//!
//! Not here: how it is read (`spec/lexer.rs`, `spec/parse.rs`) and what is done with it
//! (`tester.rs`). Source: PostgreSQL's `src/test/isolation/README`, and the real program's answers.

mod error;
mod lexer;
mod parse;

pub use self::error::{Place, SpecError, SpecProblem};

/// A test specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// SQL that is sent before each permutation, one block after the other, over the control
    /// connection.
    pub setup: Vec<String>,
    /// SQL that is sent after each permutation over the control connection.
    pub teardown: Option<String>,
    /// The sessions, in the order of the text.
    pub sessions: Vec<SessionSpec>,
    /// What to run. Where the text names no permutations, all interleavings: see
    /// [`Spec::permutations`].
    pub given: Option<Vec<Permutation>>,
}

/// A session: the steps that are run over one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpec {
    /// Its name.
    pub name: String,
    /// SQL that is sent over its connection before the steps.
    pub setup: Option<String>,
    /// SQL that is sent over its connection after the steps.
    pub teardown: Option<String>,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// SQL under a name that is unique in the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The name.
    pub name: String,
    /// The SQL as it was written between the braces, without blanks at both ends.
    pub sql: String,
}

/// Where a step stands: the session's index, and the step's within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    /// Index into [`Spec::sessions`].
    pub session: usize,
    /// Index into [`SessionSpec::steps`].
    pub step: usize,
}

/// An order in which steps are launched.
pub type Permutation = Vec<Launch>;

/// One launch of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Which step.
    pub step: StepId,
    /// What has to come before its completion is reported.
    pub markers: Vec<Marker>,
}

/// A condition under which the completion of a step is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// `*`: it is reported as waiting once, whatever it does.
    Waiting,
    /// Another step that is under way has to complete first.
    Step(StepId),
    /// Another step's session has to send so many notices first, counted from the launch.
    Notices(StepId, u32),
}

impl Spec {
    /// The same with other SQL: set-up, teardown and steps are what `change` makes of them.
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

    /// Reads a specification; `file` is the name for messages.
    ///
    /// # Errors
    /// The text is none; says where and why.
    pub fn parse(file: &str, text: &str) -> Result<Spec, SpecError> {
        parse::parse(file, text)
    }

    /// The step at a place.
    pub fn step(&self, id: StepId) -> &Step {
        &self.sessions[id.session].steps[id.step]
    }

    /// The place of the step with this name.
    pub fn find(&self, name: &str) -> Option<StepId> {
        self.sessions.iter().enumerate().find_map(|(session, candidate)| {
            let step = candidate.steps.iter().position(|step| step.name == name)?;
            Some(StepId { session, step })
        })
    }

    /// What to run: the given permutations, or all interleavings that keep each session's order,
    /// the first session's steps first. Their number grows beyond all bounds with the steps, so
    /// they are made one by one.
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

    /// Names of steps that no permutation launches, in their order.
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

/// All interleavings in lexical order of the sessions' numbers.
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
            Launch { step: StepId { session, step }, markers: Vec::new() }
        });
        let permutation = launches.collect();
        self.next = following(sessions);
        Some(permutation)
    }
}

/// The next arrangement of the same numbers in lexical order.
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
