//! A comparison on a simulated server, and its outcome.

use std::cell::RefCell;
use std::fs;
use std::ops::RangeFrom;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::{Args as _, Command, FromArgMatches as _};
use isobench_comparison::{
    CellPlan, Choice, Chosen, Design, Failure, HotStandby, Judging, Listener, Outcome, Resolved, SoFar,
    Surroundings, Target, compare,
};
use isobench_database::InitOptions;
use isobench_pgwire::SqlState;
use isobench_plan::{Observe, Plan};
use isobench_result::{Cell, Document};
use isobench_runner::{Control, Urgency};
use isobench_testkit::simulated::{Answer, Asked, Fault, ListeningServer, Truth, postgresql};
use tempfile::TempDir;

/// One transaction of the default script, and its statement that faults apply to.
pub const SCRIPT: &str = "BEGIN;\nUPDATE t SET v = v + 1;\nEND;\n";
pub const UPDATE: &str = "UPDATE t";

type Rule = Box<dyn Fn(&Asked<'_>) -> Option<Fault> + Send + Sync>;

/// A comparison that hasn't started.
pub struct Stage {
    pub folder: TempDir,
    pub options: String,
    pub answers: Vec<(&'static str, Answer)>,
    pub rules: Vec<Rule>,
    /// The step that interrupts the comparison: its text, and its number, from 1, among such steps.
    pub last: Option<(&'static str, usize)>,
    /// The reason why saving fails, if it does.
    pub unsaved: Option<&'static str>,
    pub control: Arc<Control>,
}

/// The outcome of a comparison.
pub struct Ran {
    outcome: Outcome<Document>,
    pub design: Design,
    /// The calls of the listener, in order.
    pub heard: Vec<String>,
    /// The messages that the listener didn't get.
    pub said: Vec<String>,
    /// The saved results, read back.
    pub saved: Vec<Document>,
    /// The server's actual actions.
    pub truth: Truth,
}

impl Stage {
    /// A comparison of the default script on a table made by `--setup`.
    pub fn new(options: &str) -> Stage {
        let mut stage = Stage::builtin(options).script(SCRIPT);
        let folder = stage.folder.path();
        fs::write(folder.join("setup.sql"), "CREATE TABLE t (v int);\n").expect("a file");
        let folder = folder.display();
        stage.options = format!("{options} --workload {folder}/own.sql --setup {folder}/setup.sql");
        stage
    }

    /// A comparison of a built-in script.
    pub fn builtin(options: &str) -> Stage {
        Stage {
            folder: tempfile::tempdir().expect("a folder"),
            options: options.to_owned(),
            answers: Vec::new(),
            rules: Vec::new(),
            last: None,
            unsaved: None,
            control: Arc::default(),
        }
    }

    /// Replaces the script.
    pub fn script(self, text: &str) -> Stage {
        fs::write(self.folder.path().join("own.sql"), text).expect("a file");
        self
    }

    /// Makes the server answer statements that contain `part` with one value.
    pub fn answering(mut self, part: &'static str, value: &'static str) -> Stage {
        self.answers.push((part, Answer::column("v", &[value])));
        self
    }

    /// Adds a rule for statements that contain `part`; it gets their number, from 1.
    pub fn rule(
        mut self,
        part: &'static str,
        rule: impl Fn(usize, &Asked<'_>) -> Option<Fault> + Send + Sync + 'static,
    ) -> Stage {
        let count = AtomicUsize::new(0);
        self.rules.push(Box::new(move |asked| {
            let applies = asked.sql.contains(part);
            applies.then(|| rule(count.fetch_add(1, Ordering::SeqCst) + 1, asked)).flatten()
        }));
        self
    }

    /// Makes statements that contain `part` fail, from a number on.
    pub fn failing(self, part: &'static str, code: [u8; 5], numbers: RangeFrom<usize>) -> Stage {
        let fault = Fault::Error(SqlState(code));
        self.rule(part, move |number, _| numbers.contains(&number).then_some(fault))
    }

    /// Makes the comparison.
    pub fn run(self) -> Ran {
        let (said, saved) = (Mutex::new(Vec::new()), RefCell::new(Vec::new()));
        let say = |text: &str| said.lock().expect("no panic").push(text.to_owned());
        let settings = postgresql::settings(self.answers);
        let rules = self.rules;
        let rule = move |asked: &Asked<'_>| rules.iter().find_map(|rule| rule(asked));
        let server = ListeningServer::start(self.folder.path(), settings, rule).expect("a socket");
        let steps = RefCell::default();
        let mut listener = Heard { steps, last: self.last, control: &self.control };
        let mut options = server.options();
        options.patience = self.control.patience().clone();
        let mut target = Target::connect(options, &say).expect("a server");
        let scale = || target.scale();
        let standby = target.standby.then(|| HotStandby { place: target.place(), scale: &scale });
        let placed = plan(&self.options).place(&target, None, false).expect("no settings");
        let (design, notes) = placed.fit(&target.database, standby).expect("a plan for this server");
        for note in &notes {
            say(note);
        }
        match design.schema() {
            Some(schema) => target.use_schema(schema).expect("a schema"),
            None if target.standby => {}
            None => target.claim_namespace(&say).expect("a schema"),
        }
        let judging = design.is_recorded(&target.database).then(Judging::default);
        let around = Surroundings {
            machines: None,
            targets: &[target],
            judging: judging.as_ref(),
            control: &self.control,
            say: &say,
            save: &|document| {
                let again = Document::from_json(document.to_json()).expect("a result that can be read");
                saved.borrow_mut().push(again);
                self.unsaved.map_or(Ok(()), |why| Err(Failure::Output(why.to_owned())))
            },
            command: vec!["test".to_owned()],
        };
        let outcome = compare(&design, around, &mut listener).map(|(document, _)| document);
        Ran {
            outcome,
            design,
            heard: listener.steps.into_inner(),
            said: said.into_inner().expect("no panic"),
            saved: saved.into_inner(),
            truth: server.truth(),
        }
    }
}

fn plan(options: &str) -> Chosen {
    let words = std::iter::once("test").chain(options.split_whitespace());
    let matches = Plan::augment_args(Command::new("test")).try_get_matches_from(words).expect("options");
    let options = Plan::from_arg_matches(&matches).expect("options");
    let defaults = Plan {
        workload: Some(vec!["tpcb-like".to_owned()]),
        clients: Some(vec![2]),
        rounds: Some(1),
        transactions: Some(5),
        warmup: Some(0.0),
        observe: Some(Observe::Annotations),
        no_server_side: Some(true),
        ..Plan::default()
    };
    let plan = Resolved::of(&options, None, defaults, &InitOptions::default()).expect("a plan");
    let choice = Choice { named: true, ..Choice::default() };
    plan.on(choice).expect("a plan for a named server").0
}

impl Ran {
    /// The result, which there has to be, and which was saved as it is.
    pub fn document(&self) -> &Document {
        let document = self.outcome.as_ref().expect("a result");
        assert_eq!(self.saved.last(), Some(document));
        document
    }

    /// Why the result isn't complete; empty if it is.
    pub fn incomplete(&self) -> &str {
        let document = self.document();
        assert_eq!(document.complete, document.incomplete_reason.is_none());
        document.incomplete_reason.as_deref().unwrap_or_default()
    }

    /// The number of rounds that each cell has.
    pub fn rounds(&self) -> Vec<usize> {
        self.document().cells.iter().map(|cell| cell.rounds.len()).collect()
    }

    /// Why nothing was measured.
    pub fn failure(&self) -> String {
        assert!(self.saved.is_empty() && self.heard.last().is_none_or(|step| step == "close"));
        self.outcome.as_ref().expect_err("no result").to_string()
    }

    /// How many of the lines that were heard or said contain a text.
    pub fn count(&self, part: &str) -> usize {
        self.heard.iter().chain(&self.said).filter(|line| line.contains(part)).count()
    }
}

/// A cell's transactions that committed, in every round.
pub fn committed(cell: &Cell) -> Vec<u64> {
    cell.rounds.iter().map(|round| round.transactions.committed).collect()
}

/// A listener that remembers, and may ask for the end.
struct Heard<'a> {
    steps: RefCell<Vec<String>>,
    last: Option<(&'static str, usize)>,
    control: &'a Control,
}

impl Heard<'_> {
    fn step(&self, step: String) {
        let mut steps = self.steps.borrow_mut();
        steps.push(step);
        let number = |part| steps.iter().filter(|step| step.contains(part)).count();
        if self.last.is_some_and(|(part, wanted)| number(part) == wanted)
            && self.control.urgency() == Urgency::None
        {
            self.control.interrupt();
        }
    }
}

impl Listener for Heard<'_> {
    fn start(&mut self, _: &Design) {
        self.step("start".to_owned());
    }

    fn say(&self, text: &str) {
        self.step(text.to_owned());
    }

    fn shows_waits(&self) -> bool {
        false
    }

    fn set_rounds(&mut self, rounds: u32) {
        self.step(format!("{rounds} rounds"));
    }

    fn preparing(&mut self, design: &Design, cell: &CellPlan, round: u32) {
        self.step(format!("preparing {}, round {round}", cell.name(design)));
    }

    fn prepared(&mut self, _: Duration, again: bool) {
        self.step(format!("prepared{}", if again { ", as before every cell" } else { "" }));
    }

    fn running(&self, _: &Design, _: &CellPlan, _: u32, _: &SoFar, _: &[(String, u32)]) {}

    fn in_turns(&self, _: &Design, cells: &[CellPlan], round: u32, so_far: &[SoFar], _: &[(String, u32)]) {
        assert_eq!(cells.len(), so_far.len());
        let known = self.steps.borrow().last().is_some_and(|step| step.starts_with("turns"));
        if !known {
            self.step(format!("turns of {} cells, round {round}", cells.len()));
        }
    }

    fn finished(&mut self, design: &Design, cell: &CellPlan, round: u32, _: Option<f64>, _: f64) {
        self.step(format!("finished {}, round {round}", cell.name(design)));
    }

    fn close(&self) {
        self.step("close".to_owned());
    }
}
