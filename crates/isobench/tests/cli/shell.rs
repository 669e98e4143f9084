//! What isobench says of itself: completions, manual pages, help.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::compare::words;
use crate::support::program::isobench;
use crate::support::scene::Scene;
use crate::support::skip;

/// What the program offers as the last of these words, asked as bash asks.
fn offered(scene: &Scene, line: &[&str]) -> Vec<String> {
    let mut command = scene.isobench(&["--", "isobench"]);
    command.args(line).env("ISOBENCH_COMPLETE", "bash");
    command.env("_CLAP_COMPLETE_INDEX", line.len().to_string()).env("_CLAP_IFS", "\n");
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn names_that_only_isobench_knows_are_offered() {
    let scene = Scene::new();
    scene.write("orders.sql", "SELECT 1;\n");
    scene.write("isobench-results/one/result.json", "");
    scene.write(
        "isobench-results/one/tags.json",
        "{\"format\": \"isobench/tags\", \"format_version\": 1, \"tags\": [\"nightly\"]}",
    );
    scene.write("isobench-results/mine/notes", "");
    for (line, expected, not) in [
        (&["compare", "--levels", ""][..], "rr", "registers"),
        (&["compare", "--levels", "rc,"], "rc,ser", "ser"),
        (&["compare", "-w", "ord"], "orders", "registers"),
        (&["compare", "-w", "ord"], "orders.sql", "registers"),
        (&["audit", "--workload", "write"], "write-skew", "orders"),
        (&["compare", "--plan", "sib"], "sibench", "durability"),
        (&["plans", "dur"], "durability", "orders"),
        (&["compare", "--strategies", "for"], "for-update", "reorder"),
        (&["compare", "--vary", "setting:sync"], "setting:synchronous_commit=off,on", "scale="),
        (&["compare", "-w", "bank+"], "bank+for-update", "bank"),
        (&["compare", "-w", "ycsb+a:op"], "ycsb+a:operations=", "ycsb+a:latest="),
        (&["compare", "-w", "bank:accounts=10,t"], "bank:accounts=10,totals=", "bank:accounts=10,accounts="),
        (&["compare", "--server-setting", "max_pred"], "max_pred_locks_per_page=", "fsync="),
        (&["compare", "--fault", "cr"], "crash@", "none"),
        (&["compare", "--background", "vac"], "vacuum", "dump"),
        (&["run", "--isolation", "s"], "ser", "rc"),
        (&["run", "-M", "p"], "prepared", "simple"),
        (&["workloads", "reg"], "registers", "orders"),
        (&["report", "--metric", "rat"], "ratio", "tps"),
        (&["report", "--by", "server"], "server-version", "time"),
        (&["report", ""], "one", "mine"),
        (&["report", "latest", "n"], "nightly", "one"),
        (&["comp"], "compare", "audit"),
        (&["compare", "--lev"], "--levels", "--rounds"),
        (&["completions", "f"], "fish", "bash"),
    ] {
        let found = offered(&scene, line);
        assert!(found.iter().any(|word| word == expected), "{line:?}: {found:?}");
        assert!(found.iter().all(|word| word != not), "{line:?}: {found:?}");
    }
}

/// Runs a line in a shell that knows the program as `isobench`, if the shell is there.
fn in_shell(test: &str, scene: &Scene, shell: &[&str], line: &str) -> Option<String> {
    let program = isobench();
    let folder = Path::new(&program).parent().expect("a folder");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = scene.program(Path::new(shell[0]), &shell[1..]);
    command.arg(line).env("PATH", path).env("HOME", scene.file(""));
    match command.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            skip(test, &format!("{}: {error}", shell[0]));
            None
        }
    }
}

#[test]
fn shells_complete_words() {
    let test = "shells_complete_words";
    let scene = Scene::new();
    let bash = "source <(isobench completions bash); COMP_LINE='isobench compare --levels r'; \
        COMP_WORDS=($COMP_LINE); COMP_CWORD=3; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; \
        complete -p isobench; _isobench isobench r --levels; echo ${COMPREPLY[*]}";
    let fish = "isobench completions fish | source; complete -C 'isobench compare --levels r'";
    // Zsh completes on a terminal alone: what it would be given, and that it can read the file.
    let zsh = "autoload -U compinit; compinit -u; source <(isobench completions zsh); print $_comps[isobench]; \
        ISOBENCH_COMPLETE=zsh _CLAP_COMPLETE_INDEX=3 isobench -- isobench compare --levels r";
    let shells = [(&["bash", "-c"][..], bash), (&["fish", "-c"], fish), (&["zsh", "-c"], zsh)];
    for (shell, line) in shells {
        let Some(printed) = in_shell(test, &scene, shell, line) else { continue };
        for expected in ["rc", "rr", "ru"] {
            assert!(printed.contains(expected), "{}: {printed}", shell[0]);
        }
        assert!(!printed.contains("ser"), "{}: {printed}", shell[0]);
        assert!(shell[0] != "zsh" || printed.contains("_clap_dynamic_completer_isobench"), "{printed}");
        assert!(shell[0] != "bash" || printed.contains("-F _isobench isobench"), "{printed}");
    }
}

/// Bash takes a line apart at more characters than spaces, and replaces only the last part.
#[test]
fn bash_completes_words_that_it_takes_apart() {
    let test = "bash_completes_words_that_it_takes_apart";
    let scene = Scene::new();
    // The line up to the cursor, its words for bash, and what bash replaces.
    for (line, apart, replaced, expected) in [
        (
            "isobench compare --vary setting:sync",
            "isobench compare --vary setting : sync",
            "sync",
            "synchronous_commit=off,on",
        ),
        (
            "isobench compare -w bank:",
            "isobench compare -w bank :",
            "",
            "accounts= balance= transfers= totals=",
        ),
        (
            "isobench compare -w ycsb+a:moves=2,sh",
            "isobench compare -w ycsb+a : moves = 2,sh",
            "2,sh",
            "2,share=",
        ),
        ("isobench compare --levels=rc,s", "isobench compare --levels = rc,s", "rc,s", "rc,ser"),
        ("isobench compare -f a@2 --fault cr", "isobench compare -f a @ 2 --fault cr", "cr", "crash@"),
        ("isobench  compare   --fault stop:f", "isobench compare --fault stop : f", "f", "fast@"),
    ] {
        let bash = format!(
            "source <(isobench completions bash); COMP_LINE='{line}'; COMP_WORDS=({apart}); COMP_TYPE=9; \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_POINT=${{#COMP_LINE}}; \
             _isobench isobench '{replaced}' ''; echo \"${{COMPREPLY[*]}}\""
        );
        let Some(printed) = in_shell(test, &scene, &["bash", "-c"], &bash) else { return };
        assert_eq!(printed.trim(), expected, "{line}");
    }
}

#[test]
fn manual_pages_are_well_formed() {
    let scene = Scene::new();
    scene.run(&["man", "pages"]).expect(0);
    let pages: Vec<_> =
        fs::read_dir(scene.file("pages")).expect("pages").flatten().map(|entry| entry.path()).collect();
    assert!(pages.len() > 15, "{pages:?}");
    let page = scene.read("pages/isobench-compare.1");
    for part in [".TH isobench-compare 1", "isobench compare", "\\-\\-levels", "Examples:"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    scene.run(&["man"]).expect(0).prints(&[".TH isobench 1", "compare"]);
    let mut lint = Command::new("mandoc");
    lint.args(["-T", "lint", "-W", "warning"]).args(&pages);
    match lint.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}");
        }
        Err(error) => skip("manual_pages_are_well_formed", &format!("mandoc: {error}")),
    }
}

#[test]
fn help_is_there_without_a_network() {
    let scene = Scene::new();
    scene.run(&["help"]).expect(0).prints(&["Commands:", "anomalies", "isobench help NAME"]);
    scene.run(&["help", "compare"]).expect(0).prints(&["Usage: isobench compare", "--levels", "Examples:"]);
    scene.run(&["help", "compare", "x"]).expect(1).says(&["there is no help on \"compare x\""]);
    scene.run(&["help", "anomalies"]).expect(0).prints(&["# Anomalies", "lost update"]);
    // Options, also by the names that other programs have for them.
    for (word, said) in [
        ("retry", &["--retry-sqlstate <", "run"][..]),
        ("threads", &["-j, --jobs <NUM>"]),
        ("recorded", &["isobench help verdict: ", "--history <FOLDER>"]),
    ] {
        let found = scene.run(&["help", word]).expect(0).prints(said);
        assert!(found.stdout.lines().count() <= 20, "{}", found.stdout);
    }
    scene.run(&["help", "anomalys"]).expect(1).says(&["there is no help on \"anomalys\"", "anomalies"]);
    scene.run(&["--version", "--verbose"]).expect(0).prints(&["isobench ", "built for:", "fetches:"]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let output = scene.isobench(&["--version", "--verbose"]).stdout(full).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && !said.contains("panicked"), "{said}");
    scene.run(&["--version"]).expect(0).prints(&["isobench "]);
    // Each command has three examples, of options that exist.
    let commands = scene.run(&["help"]).expect(0).stdout;
    let listed = commands.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed: Vec<String> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| commands.contains(&format!("\n  {name} ")) && name != "pgbench")
        .collect();
    assert!(listed.len() > 12, "{listed:?}");
    for name in listed {
        let Some(help) = Some(scene.run(&["help", &name])).filter(|help| help.code() == Some(0)) else {
            continue;
        };
        let examples: Vec<&str> =
            help.stdout.lines().filter_map(|line| line.trim().strip_prefix("isobench ")).collect();
        let own: Vec<&&str> = examples.iter().filter(|line| words(line)[0] == name).collect();
        assert_eq!(own.len(), 3, "{name}: {examples:?}");
        let listed = help.stdout.lines().map(str::trim).filter(|line| line.starts_with('-'));
        let listed: Vec<&str> = listed.flat_map(|line| line.split([' ', ','])).collect();
        // What follows -- belongs to another program.
        let of_ours = own.iter().flat_map(|line| words(line).into_iter().take_while(|word| *word != "--"));
        for option in of_ours.filter(|word| word.starts_with('-')) {
            assert!(listed.contains(&option), "{name} has no {option}");
        }
    }
}
