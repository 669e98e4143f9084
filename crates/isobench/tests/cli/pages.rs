//! Pages of the manual whose every script and command is run: the files in their blocks are written,
//! and the commands carried out in order, in one folder.
//!
//! A block of SQL is the file that the text before it names first. A command whose last word is
//! `test` works on a database of this name; every other one starts a server of its own. Not here:
//! commands of other pages, whose options are checked without a server (`tests/manual`).

use std::fs;
use std::path::Path;

use isobench_testkit::installed::{pgbenches, skip};

use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;

/// What a page has, in its order.
enum Part {
    File {
        name: String,
        text: String,
    },
    /// The words after `isobench`.
    Command(Vec<String>),
}

fn parts(page: &str) -> Vec<Part> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(page);
    let text = fs::read_to_string(path).expect("the page");
    let (mut parts, mut name, mut block) = (Vec::new(), None, None);
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut block) {
            (Some(language), None) => block = Some((language.to_owned(), String::new())),
            (None, Some((_, content))) => content.extend([line, "\n"]),
            (Some(_), Some(_)) => match block.take().expect("a block is open") {
                (language, text) if language == "sql" => {
                    let name = name.take().expect("a block of SQL follows the name of its file");
                    parts.push(Part::File { name, text });
                }
                (_, commands) => {
                    let commands = commands.lines().filter(|line| line.starts_with("isobench "));
                    let words = |line| shlex::split(line).expect("words").split_off(1);
                    parts.extend(commands.map(|line| Part::Command(words(line))));
                }
            },
            (None, None) => {
                let named = line
                    .split('`')
                    .skip(1)
                    .step_by(2)
                    .find(|word| word.rsplit_once('.').is_some_and(|(_, kind)| kind == "sql"));
                name = name.filter(|_| !line.starts_with('#')).or(named.map(str::to_owned));
            }
        }
    }
    parts
}

/// Runs a page. Returns the scene, the scripts' names, and what each command printed.
fn run(page: &str, database: &Database) -> (Scene, Vec<String>, Vec<(String, String)>) {
    let scene = Scene::new();
    let (mut scripts, mut printed) = (Vec::new(), Vec::new());
    for part in parts(page) {
        match part {
            Part::File { name, text } => {
                scene.write(&name, &text);
                scripts.push(name);
            }
            Part::Command(mut words) => {
                let line = words.join(" ");
                if words.last().is_some_and(|word| word == "test") {
                    words.pop();
                    words.extend(
                        database.server_options().into_iter().chain(["-d".to_owned(), database.name.clone()]),
                    );
                }
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let finished = Running::start(&mut scene.isobench(&words)).finish_as(&line);
                assert!(finished.code() == Some(0), "{line}\n{finished:#?}");
                printed.push((line, finished.stdout));
            }
        }
    }
    scene.assert_clean();
    (scene, scripts, printed)
}

/// What the commands with these words printed.
fn output<'p>(printed: &'p [(String, String)], words: &str) -> &'p str {
    let found = printed.iter().find(|(line, _)| line.contains(words));
    &found.unwrap_or_else(|| panic!("no command has {words}")).1
}

#[test]
fn pgbenchs_examples_work() {
    const TEST: &str = "pages::pgbenchs_examples_work";
    let Some(database) = Database::new(TEST) else { return };
    let (scene, scripts, printed) = run("pgbench-examples.md", &database);
    assert!(scripts.len() >= 8 && printed.len() >= 20, "{scripts:?} {}", printed.len());
    assert!(output(&printed, "-f gset.sql").contains("number of transactions actually processed: 100/100"));
    assert!(output(&printed, "run -c 4 -t 100 test").contains("scaling factor: 2"));
    assert!(output(&printed, "compare -f tpcb.sql").contains("serializable"));
    for log in ["pgbench_log.", "some.", "sums."] {
        let files = fs::read_dir(scene.file("")).expect("the folder").flatten();
        let found = files.filter(|entry| entry.file_name().to_string_lossy().starts_with(log)).count();
        assert!(found > 0, "no file {log}*");
    }

    // The real program takes the same scripts.
    let Some(real) = pgbenches().pop() else {
        return skip(TEST, "there is no pgbench to compare with (ISOBENCH_PGBENCH can name one)");
    };
    for script in scripts.iter().filter(|name| real.major >= 17 || *name != "synced.sql") {
        let protocol = if scene.read(script).contains("\\startpipeline") { "extended" } else { "simple" };
        let mut pgbench = scene.program(&real.program, &["-n", "-t", "5", "-M", protocol, "-f", script]);
        pgbench.args(database.server_options()).arg(&database.name);
        Running::start(&mut pgbench).finish_as(script).expect(0).prints(&["processed: 5/5"]);
    }
}

#[test]
fn stored_procedures_are_measured_and_judged_as_the_page_says() {
    let Some(database) = Database::new("pages::stored_procedures_are_measured_and_judged_as_the_page_says")
    else {
        return;
    };
    let (_, scripts, printed) = run("stored-procedures.md", &database);
    assert_eq!(scripts.len(), 6, "{scripts:?}");
    assert!(output(&printed, "observe").contains("untracked what function payment reads and writes"));
    let judged = output(&printed, "compare -f annotated.sql");
    let row = |text: &str, start: &str| {
        let named =
            |line: &&str| line.split_once(start).is_some_and(|(mark, _)| mark.trim().chars().count() <= 2);
        let found = text.lines().filter(|line| line.starts_with("  ")).find(named).map(str::to_owned);
        found.unwrap_or_else(|| panic!("no row {start}:\n{text}"))
    };
    // Every other transaction or so meets one of ten warehouses that another is about to write.
    assert!(row(judged, "read committed").contains("lost update"), "updates are lost:\n{judged}");
    assert!(row(judged, "repeatable read").contains("no anomaly found"), "{judged}");
    assert!(output(&printed, "--workload steps.sql").contains("steps.sql"));
    assert!(output(&printed, "batch.sql").contains("wrong: "));
}
