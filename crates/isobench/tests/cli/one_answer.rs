//! One question has one answer: `compare`, `probe` and `advise` never contradict each other, and say what is true, of
//! public problems (`one_answer/problems.txt`) and of sets of which isobench once proved too much.
//!
//! A few of them by default, all with `ISOBENCH_EVERY_PROBLEM`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::compare::words;
use crate::support::scene::Scene;

const PROBLEMS: &str = include_str!("one_answer/problems.txt");
const SETS: &str = include_str!("../../../isobench-program/tests/corpus/proved.txt");

/// Each so many problems is tried by default.
const EACH: usize = 64;

/// The problems that are tried at the same time.
const AT_ONCE: usize = 2;

const LEVELS: [(&str, &str); 3] =
    [("rc", "read committed"), ("rr", "repeatable read"), ("ser", "serializable")];

/// Tables and scripts, and what is known of them.
struct Problem {
    name: &'static str,
    setup: &'static str,
    /// The names, with weights, and the texts.
    scripts: Vec<(&'static str, &'static str)>,
    options: Vec<String>,
    /// What holds at each level, and the levels that may be recommended; none of sets.
    truth: Option<(&'static str, &'static str)>,
}

/// What the commands said.
#[derive(Debug, Default)]
struct Said {
    /// The levels at which all transactions ran and something was shown to be wrong, by command.
    unsafe_at: BTreeSet<(&'static str, &'static str)>,
    /// The levels that `compare` recommends, and those that it calls proved.
    recommended: Vec<String>,
    proved: Vec<String>,
    /// For each script, the level that `advise` proves, if it does, and one that passed.
    advised: Vec<(String, Option<String>, Option<String>)>,
    /// True if `advise` shows that no level is enough.
    none_is_enough: bool,
}

fn problems() -> Vec<Problem> {
    let parts = |text: &'static str| text.split("===== ").skip(1);
    let problem = |text: &'static str| {
        let (given, truth) = text.rsplit_once("--> ").expect("a truth");
        let mut sections = given.split("--- ").map(|section| section.split_once('\n').expect("a name"));
        let (name, setup) = sections.next().expect("the tables");
        let (options, scripts): (Vec<_>, Vec<_>) = sections.partition(|(name, _)| *name == "options");
        let options = options.first().map(|(_, text)| shell_words(text)).unwrap_or_default();
        // Sets have the levels that are proved instead.
        let truth = truth.trim().split_once("; ").filter(|(levels, _)| levels.starts_with("rc "));
        Problem { name, setup, scripts, options, truth }
    };
    // Of sets in which one row of a thousand shows what is wrong, a run sees it or doesn't.
    let rare = |text: &&str| text.contains("= 417") || text.contains("<> 417");
    parts(PROBLEMS).chain(parts(SETS).filter(|text| !rare(text))).map(problem).collect()
}

/// Words that are separated by spaces, some in single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.trim().split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// A script that draws the variables that it uses and doesn't set: some sets leave that out.
fn with_variables(text: &str) -> String {
    let name = |part: &str| -> String {
        part.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
    };
    let names = text.split(':').skip(1).map(name);
    let open = |name: &String| name.starts_with(|first: char| first.is_ascii_alphabetic());
    let set = |name: &String| text.contains(&format!("\\set {name} ")) || name == "client_id";
    let unset: BTreeSet<String> = names.filter(|name| open(name) && !set(name)).collect();
    let lines: Vec<String> = unset.iter().map(|name| format!("\\set {name} random(1, 2)\n")).collect();
    lines.concat() + text
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Problem {
    /// The scripts as options.
    fn files(&self, with_weights: bool) -> Vec<String> {
        let file = |name: &str| {
            let (name, weight) = name.split_once('@').map_or((name, ""), |(name, weight)| (name, weight));
            if with_weights && !weight.is_empty() {
                format!("{name}.sql@{weight}")
            } else {
                format!("{name}.sql")
            }
        };
        self.scripts.iter().flat_map(|(name, _)| ["-f".to_owned(), file(name)]).collect()
    }

    /// Runs a command, with the options of the problem that it has, and reads its JSON.
    fn run(&self, scene: &Scene, command: &str, more: &str) -> (Option<i32>, Option<Value>) {
        let _ = std::fs::remove_file(scene.file("said.json"));
        let mut line = vec![command.to_owned()];
        line.extend(self.files(command == "compare"));
        line.extend(words(more).into_iter().map(str::to_owned));
        line.extend(["--setup", "setup.sql", "--json", "said.json"].map(str::to_owned));
        let mut options = self.options.iter();
        while let (Some(name), Some(value)) = (options.next(), options.next()) {
            if command != "probe" || name == "--invariant" {
                line.extend([name.clone(), value.clone()]);
            }
        }
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let finished = scene.run(&line);
        let document = std::fs::read_to_string(scene.file("said.json"));
        let document = document.ok().map(|text| serde_json::from_str(&text).expect("JSON"));
        if document.is_none() {
            eprintln!("{}: {command}: {}", self.name, finished.stderr);
        }
        (finished.code(), document)
    }

    /// Asks all commands, and returns how they contradict each other or the truth. The rows of a set of which
    /// only the levels are known may be used up, or not found: then nothing can be measured.
    fn contradictions(&self) -> Vec<String> {
        let scene = Scene::new();
        scene.write("setup.sql", self.setup);
        for (name, text) in &self.scripts {
            let name = name.split('@').next().unwrap_or(name);
            scene.write(&format!("{name}.sql"), &with_variables(text));
        }
        let mut said = Said::default();
        let mut wrong = Vec::new();
        let (code, compared) = self.run(&scene, "compare", "--levels rc,rr,ser --time 1 --rounds 3");
        if let Some(document) = compared {
            said.read_comparison(&document);
        } else if self.truth.is_some() {
            wrong.push(format!("compare gives no result (status {code:?})"));
        }
        let (code, tried) = self.run(&scene, "probe", "--levels rc,rr,ser --try 5");
        if let Some(document) = tried {
            said.read_interleavings(&document);
        } else if self.truth.is_some() {
            wrong.push(format!("probe gives no result (status {code:?})"));
        }
        let (code, advised) = self.run(&scene, "advise", "--no-measure");
        if let Some(document) = advised {
            said.read_advice(&document);
        } else {
            wrong.push(format!("advise gives no result (status {code:?})"));
        }
        if let Some(allocation) = said.allocation() {
            let (code, _) = self.run(&scene, "probe", &format!("--allocation {allocation} --try 5"));
            if code == Some(3) || self.truth.is_some() && code != Some(0) {
                wrong.push(format!("advise proves {allocation}, probe ends with status {code:?} there"));
            }
        }
        said.contradict(&mut wrong);
        if let Some((levels, may_be_recommended)) = self.truth {
            said.compare_with_truth(levels, may_be_recommended, &mut wrong);
        }
        if !wrong.is_empty() {
            wrong.push(format!("{said:?}"));
        }
        wrong
    }
}

impl Said {
    fn read_comparison(&mut self, document: &Value) {
        for cell in document["cells"].as_array().expect("cells") {
            let counts = ["/verdict/anomalies", "/violations", "/damage"];
            let wrong = |path: &&str| cell["summary"].pointer(path).and_then(Value::as_u64).unwrap_or(0) > 0;
            let level = cell["level"]["requested"].as_str().expect("a level");
            if counts.iter().any(wrong) {
                self.note_unsafe("compare", level);
            }
        }
        self.recommended = strings(&document["answer"]["recommended"]);
        let observations = document["observations"].as_array();
        self.proved = observations.into_iter().flatten().flat_map(|one| strings(&one["proved"])).collect();
    }

    fn read_interleavings(&mut self, document: &Value) {
        for level in document["levels"].as_array().expect("levels") {
            if !level["tried"]["found"].as_array().expect("a list").is_empty() {
                self.note_unsafe("probe", level["level"].as_str().expect("a level"));
            }
        }
    }

    fn read_advice(&mut self, document: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        for one in document["transactions"].as_array().expect("transactions") {
            let script = text(&one["script"]).expect("a name");
            self.advised.push((script, text(&one["level"]), text(&one["passed"]["level"])));
        }
        self.none_is_enough = !document["at_any_level"].is_null();
    }

    fn note_unsafe(&mut self, command: &'static str, level: &str) {
        let (_, level) = LEVELS.iter().find(|(_, name)| *name == level).expect("a level");
        self.unsafe_at.insert((command, level));
    }

    fn is_unsafe(&self, level: &str) -> bool {
        self.unsafe_at.iter().any(|(_, known)| *known == level)
    }

    /// The levels that `advise` proves, as an option; `None` if there is a script without one.
    fn allocation(&self) -> Option<String> {
        let short = |level: &String| LEVELS.iter().find(|(_, name)| name == level).map(|(short, _)| *short);
        let all: Option<Vec<String>> = self
            .advised
            .iter()
            .map(|(script, level, _)| Some(format!("{script}={}", short(level.as_ref()?)?)))
            .collect();
        all.filter(|all| !all.is_empty()).map(|all| format!("{},*=ser", all.join(",")))
    }

    /// The one level that all scripts have by `advise`: the proved one, or else that which passed.
    fn uniform(&self, passed: bool) -> Option<&str> {
        let of = |(_, level, other): &'_ (String, Option<String>, Option<String>)| {
            if passed { other.clone().or_else(|| level.clone()) } else { level.clone() }
        };
        let first = of(self.advised.first()?)?;
        let same = self.advised.iter().all(|one| of(one).as_ref() == Some(&first));
        same.then(|| LEVELS.iter().find(|(_, name)| *name == first).map(|(_, name)| *name)).flatten()
    }

    fn contradict(&self, wrong: &mut Vec<String>) {
        for level in self.recommended.iter().filter(|level| self.is_unsafe(level)) {
            wrong.push(format!("compare recommends {level}, which is shown to be unsafe"));
        }
        for level in self.proved.iter().filter(|level| self.is_unsafe(level)) {
            wrong.push(format!("compare calls {level} proved, which is shown to be unsafe"));
        }
        for (passed, word) in [(false, "proves"), (true, "says that nothing was found at")] {
            if let Some(level) = self.uniform(passed).filter(|level| self.is_unsafe(level)) {
                wrong.push(format!("advise {word} {level}, which is shown to be unsafe"));
            }
        }
        if self.none_is_enough && !self.recommended.is_empty() {
            wrong.push("advise shows that no level is enough, compare recommends one".to_owned());
        }
    }

    fn compare_with_truth(&self, levels: &str, may_be_recommended: &str, wrong: &mut Vec<String>) {
        let long = |short: &str| LEVELS.iter().find(|(known, _)| *known == short).map(|(_, name)| *name);
        for level in levels.split(", ") {
            let (level, truth) = level.split_once(' ').expect("a level and its truth");
            let level = long(level).expect("a level");
            if truth == "safe" && self.is_unsafe(level) {
                wrong.push(format!("{level} is accused, but safe"));
            }
            if truth == "unsafe" && !self.unsafe_at.contains(&("compare", level)) {
                wrong.push(format!("compare doesn't show that {level} is unsafe"));
            }
        }
        let may_be: Vec<&str> = may_be_recommended.split(',').collect();
        let may = |level: &String| may_be.iter().any(|short| long(short) == Some(level.as_str()));
        let none = self.recommended.is_empty() && may_be.contains(&"none");
        if !none && (self.recommended.is_empty() || !self.recommended.iter().all(may)) {
            wrong.push(format!("compare recommends {:?} instead of {may_be_recommended}", self.recommended));
        }
    }
}

#[test]
fn all_commands_give_one_answer() {
    if Scene::with_server("all_commands_give_one_answer").is_none() {
        return;
    }
    let mut problems = problems();
    assert!(problems.len() > 60, "{} problems", problems.len());
    if let Ok(wanted) = std::env::var("ISOBENCH_PROBLEM") {
        problems.retain(|problem| problem.name.contains(&wanted));
    } else if std::env::var_os("ISOBENCH_EVERY_PROBLEM").is_none() {
        problems = problems.into_iter().step_by(EACH).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(problem) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
            let wrong = problem.contradictions();
            println!("{}: {}", problem.name, if wrong.is_empty() { "one answer" } else { "contradictions" });
            found.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", problem.name)));
        }
        found
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    assert!(wrong.is_empty(), "{} contradictions:\n{}", wrong.len(), wrong.join("\n"));
}
