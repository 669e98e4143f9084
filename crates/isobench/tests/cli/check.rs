//! `isobench check`: histories of each format, good and bad. No server is needed.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;

use isobench_testkit::ports::free_addresses;
use serde_json::Value;

use crate::support::program::{Finished, Running, isobench};
use crate::support::scene::Scene;

/// A lost update, which read committed permits and snapshot isolation doesn't.
const LOST: &str = "\
# two clients increment a row at the same time
T1 client=0 10..20: r x 5 = v3/17, w x 5 = v4/1
T2 client=1 12..25: r x 5 = v3/17, w x 5 = v4/2
T3 client=0 30..31 aborted: w x 5 = v5/3
";

/// The same as lists, in Elle's formats; without an appended element being read twice.
const LOST_LISTS: &str = "\
T1 client=0 10..20: l x = [], a x += 1
T2 client=1 12..25: l x = [], a x += 2
T3 client=2 30..40: l x = [1 2]
";

const SERIAL: &str = "\
T1 client=0 10..20: r x 5 = v3/17, w x 5 = v4/1
T2 client=1 22..25: r x 5 = v4/1, w x 5 = v5/2
";

/// A scene with the histories as text files.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("lost.txt", LOST);
    scene.write("lists.txt", LOST_LISTS);
    scene.write("serial.txt", SERIAL);
    scene
}

/// Runs the program with a file as standard input.
fn run_on(scene: &Scene, arguments: &[&str], input: &str) -> Finished {
    let file = File::open(scene.file(input)).expect("a file");
    let output = scene.isobench(arguments).stdin(Stdio::from(file)).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Finished { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Starts the same check on so many machines on loopback.
fn start_together(scene: &Scene, arguments: &[&[&str]]) -> Vec<Running> {
    let addresses = free_addresses(arguments.len()).join(",");
    let one = |(rank, arguments): (usize, &&[&str])| {
        let mut command = scene.isobench(arguments);
        command.args(["--peers", &addresses, "--rank", &rank.to_string(), "--peers-wait", "600"]);
        Running::start(&mut command)
    };
    arguments.iter().enumerate().map(one).collect()
}

/// A recording of several chunks: rows that are read and written in turns, and an update that is lost
/// between the first transaction and the last.
fn long_recording(scene: &Scene) {
    const ROWS: u64 = 500;
    let mut text = String::from("T1 client=0 1..900000000: r lost 1 = v0, w lost 1 = v2\n");
    for number in 2..200_000_u64 {
        let (row, version, begin) = (number % ROWS, number / ROWS, number * 100);
        let _ = writeln!(
            text,
            "T{number} client={} {begin}..{}: r x {row} = v{version}, w x {row} = v{}",
            number % 50 + 1,
            begin + 90,
            version + 1
        );
    }
    text += "T200000 client=60 20000000..20000050: r lost 1 = v0, w lost 1 = v1\n";
    scene.write("long.txt", &text);
    scene.run(&["check", "long.txt", "--convert", "binary:long.history"]).expect(0);
}

#[test]
fn several_machines_find_what_one_does() {
    let scene = scene();
    long_recording(&scene);
    let size = fs::metadata(scene.file("long.history")).expect("a recording").len();
    assert!(size > 2 << 20, "several chunks: {size}");
    let options = ["check", "long.history", "--promised", "serializable", "--json"];
    let alone = scene.run(&[&options[..], &["alone.json"]].concat()).expect(3);
    let together = [&options[..], &["together.json"]].concat();
    let mut all = start_together(&scene, &[&together, &together, &together]).into_iter();
    let zero = all.next().expect("rank 0").finish();
    for (rank, other) in (1..).zip(all) {
        let other = other.finish().expect(0);
        assert_eq!(other.stdout, "", "rank 0 has the result");
        other.says(&[&format!("rank {rank} of 3: has checked its share")]);
    }
    let zero = zero.expect(3);
    assert_eq!(zero.stdout, alone.stdout);
    zero.prints(&["P4, lost update", "T200000 (client 60)"]);
    let read = |name: &str| {
        let text = fs::read_to_string(scene.file(name)).expect("a result");
        let mut document: Value = serde_json::from_str(&text).expect("JSON");
        document["histories"][0]["verdict"]["check_s"] = Value::Null;
        document
    };
    assert_eq!(read("together.json"), read("alone.json"));
}

#[test]
fn machines_that_cannot_check_together_say_why() {
    let scene = scene();
    for name in ["lost", "serial"] {
        let to = format!("binary:{name}.history");
        scene.run(&["check", &format!("{name}.txt"), "--convert", &to]).expect(0);
    }
    let cut = fs::read(scene.file("lost.history")).expect("a recording");
    fs::write(scene.file("cut.history"), &cut[..cut.len() - 4]).expect("a file");
    for (files, why) in [
        (["lost.history", "serial.history"], "another recording"),
        (["lost.history", "cut.history"], "it ends within the part"),
        (["cut.history", "lost.history"], "it ends within the part"),
    ] {
        let arguments = files.map(|file| ["check", file]);
        let all = start_together(&scene, &[&arguments[0], &arguments[1]]);
        let all: Vec<Finished> = all.into_iter().map(|one| one.finish().expect(1)).collect();
        assert!(all.iter().all(|one| one.stderr.contains(why)), "{files:?}: {all:?}");
    }
    for (arguments, why) in [
        (
            &["check", "lost.txt", "--peers", "127.0.0.1:1,127.0.0.1:2"][..],
            "--peers takes recordings of isobench",
        ),
        (&["check", "-", "--peers", "127.0.0.1:1,127.0.0.1:2", "--rank", "0"], "it can't be standard input"),
        (
            &["check", "lost.history", "lost.history", "--peers", "127.0.0.1:1,127.0.0.1:2"],
            "one recording at a time",
        ),
        (
            &["check", "lost.history", "--convert", "text:x.txt", "--peers", "127.0.0.1:1,127.0.0.1:2"],
            "--convert takes the whole history",
        ),
        (&["check", "lost.history", "--rank", "1"], "name them by --peers"),
        (&["check", "none.history", "--peers", "127.0.0.1:1,127.0.0.1:2"], "none.history"),
    ] {
        scene.run(arguments).expect(1).says(&[why]);
    }
}

#[test]
fn the_promise_decides_the_status() {
    let scene = scene();
    let finished = scene.run(&["check", "lost.txt"]).expect(0);
    finished.prints(&[
        "P4, lost update",
        "The strongest guarantees that it does not contradict: ",
        "T1 (client 0)",
    ]);
    for (promised, status) in [
        ("read committed", 0),
        ("strong-read-committed", 0),
        ("Snapshot Isolation", 3),
        ("serializable", 3),
        ("repeatable read", 3),
    ] {
        scene.run(&["check", "lost.txt", "--promised", promised]).expect(status);
        scene.run(&["check", "serial.txt", "--promised", promised]).expect(0).prints(&["this isn't a proof"]);
    }
    let finished = scene.run(&["check", "--promised", "serializable", "serial.txt", "lost.txt"]).expect(3);
    let finished = finished.prints(&["\"serial.txt\"\n════", "\n\"lost.txt\"\n════", "PROMISE BROKEN"]);
    finished.says(&["isobench: error: \"lost.txt\" contradicts what was promised: serializable"]);
}

/// Two serializable writers and a report at repeatable read: the read-only anomaly.
const RECEIPTS: &str = "\
T1 client=0 10..20 ser: r control = v0/90, w receipts = v1/1
T2 client=1 12..14 ser: r control = v0/90, w control = v1/2
T3 client=2 15..18 rr readonly: r control = v1/2, r receipts = v0/91
";

#[test]
fn each_transaction_is_judged_by_its_own_level() {
    let scene = Scene::new();
    scene.write("receipts.txt", RECEIPTS);
    let finished = scene.run(&["check", "receipts.txt", "--json", "result.json"]).expect(0);
    finished.prints(&[
        "NOT SERIALIZABLE as a whole: the history shows write skew (G2-item).\n",
        "Nothing contradicts what each transaction's own level promises (1 at repeatable read, 2 at serializable).\n",
        "3 transactions lie on cycles that no level promises to prevent: 1 at repeatable read, 2 at serializable.\n",
        "No transaction's level promises to prevent this.\n",
    ]);
    let result: Value = serde_json::from_str(&scene.read("result.json")).expect("JSON");
    let verdict = &result["histories"][0]["verdict"];
    assert_eq!((&verdict["promised"], &verdict["kept"]), (&Value::Null, &Value::Bool(true)));
    let mixed = &verdict["mixed"];
    assert_eq!(mixed["serializable"], false);
    assert_eq!(mixed["broken"], Value::Array(Vec::new()));
    let levels = serde_json::json!([
        { "level": "repeatable read", "transactions": 1 },
        { "level": "serializable", "transactions": 2 },
    ]);
    assert_eq!((&mixed["levels"], &mixed["permitted"]), (&levels, &levels));
    // By CockroachDB's manual the serializable ones are as at one instant, and a snapshot sees both.
    let finished =
        scene.run(&["check", "receipts.txt", "--server", "cockroachdb", "--json", "result.json"]).expect(3);
    let finished = finished.prints(&["PROMISE BROKEN to transactions by their own levels"]);
    finished.says(&["\"receipts.txt\" contradicts what its transactions' own levels promise"]);
    let result: Value = serde_json::from_str(&scene.read("result.json")).expect("JSON");
    let verdict = &result["histories"][0]["verdict"];
    assert_eq!(verdict["kept"], false);
    assert_eq!(verdict["mixed"]["broken"][0]["anomaly"]["name"], "G2-item");
    assert_eq!(verdict["mixed"]["broken"][0]["anomaly"]["breaks_promise"], true);
    // One level is a promise to all.
    scene.write("receipts.txt", &RECEIPTS.replace("rr readonly", "ser"));
    scene.run(&["check", "receipts.txt"]).expect(3).says(&["contradicts what was promised: serializable"]);
    scene.run(&["check", "receipts.txt", "--promised", "snapshot isolation"]).expect(0);
    scene.run(&["check", "receipts.txt", "--server", "oracle"]).expect(1).says(&[
        "unknown server \"oracle\"; use one of PostgreSQL, Aurora DSQL, H2, YugabyteDB, CockroachDB",
    ]);
}

#[test]
fn every_format_gives_the_same_verdict() {
    let scene = scene();
    let words = scene.run(&["check", "lists.txt"]).expect(0).stdout;
    for format in ["binary", "edn", "json", "text"] {
        let file = format!("lists.{format}");
        scene.run(&["check", "lists.txt", "--convert", &format!("{format}:{file}")]).expect(0);
        for arguments in [vec!["check", &file], vec!["check", &file, "--format", format]] {
            let finished = scene.run(&arguments).expect(0);
            assert!(finished.stdout.contains("lost update"), "{format}: {}", finished.stdout);
            // Elle's formats name transactions by the positions of their completions.
            assert!(finished.stdout == words || ["edn", "json"].contains(&format), "{}", finished.stdout);
        }
        let finished = run_on(&scene, &["check", "-", "--promised", "snapshot isolation"], &file).expect(3);
        finished.says(&["standard input contradicts"]);
    }
    let text = run_on(&scene, &["check", "-", "--convert", "text:-"], "lists.binary").expect(0);
    assert_eq!(text.stdout, LOST_LISTS);
}

#[test]
fn results_as_json_and_as_a_graph() {
    let scene = scene();
    let options = [
        "check",
        "lost.txt",
        "serial.txt",
        "--promised",
        "serializable",
        "--json",
        "result.json",
        "--dot",
        "-",
        "--svg",
        "drawings",
    ];
    let finished = scene.run(&options).expect(3);
    let drawing = scene.read("drawings/lost-p4.svg");
    assert!(drawing.starts_with("<svg ") && drawing.contains("lost update"), "{drawing}");
    assert!(finished.stdout.starts_with("digraph \"P4\" {"), "{}", finished.stdout);
    let result: Value = serde_json::from_str(&scene.read("result.json")).expect("JSON");
    assert_eq!(result["format"], "isobench/check");
    let lost = &result["histories"][0];
    assert_eq!((&lost["file"], &lost["history_format"]), (&"lost.txt".into(), &"text".into()));
    assert_eq!(lost["verdict"]["kept"], false);
    assert_eq!(lost["verdict"]["anomalies"][0]["known_as"], "lost update");
    assert_eq!(lost["verdict"]["examined"]["aborted"], 1);
    assert_eq!(result["histories"][1]["verdict"]["kept"], true);
    let finished = scene.run(&["check", "serial.txt", "--json", "-"]).expect(0);
    assert!(serde_json::from_str::<Value>(&finished.stdout).is_ok(), "{}", finished.stdout);
}

#[test]
fn orders_are_looked_at_if_asked_for() {
    let scene = Scene::new();
    // T2 started after T1 had ended, in the same session, and doesn't see T1's write.
    scene.write("stale.txt", "T1 client=0 1..2: w x = 1\nT2 client=0 3..4: r x = init\n");
    for (order, strict, status) in [
        ("real-time", "strict serializable", 3),
        ("real-time", "strong session serializable", 3),
        ("real-time", "serializable", 0),
        ("session", "strong session serializable", 3),
        ("data", "serializable", 0),
        ("data", "strict serializable", 1),
    ] {
        let finished = scene.run(&["check", "stale.txt", "--order", order, "--promised", strict]);
        let finished = finished.expect(status);
        if status == 1 {
            finished.says(&["--order data doesn't look at what \"strict serializable\" promises"]);
        }
    }
}

/// A recording is checked while it is read, once.
#[test]
fn a_recording_proves_what_its_history_proves() {
    let scene = scene();
    scene.run(&["check", "lost.txt", "--convert", "binary:lost.history"]).expect(0);
    let arguments = ["check", "lost.txt", "--promised", "serializable"];
    let expected = scene.run(&arguments).expect(3).stdout;
    assert!(expected.contains("lost update"), "{expected}");
    for arguments in [["check", "lost.history"], ["check", "-"]] {
        let arguments = [&arguments[..], &["--promised", "serializable"]].concat();
        let finished = run_on(&scene, &arguments, "lost.history").expect(3);
        assert_eq!(finished.stdout, expected);
    }
}

/// A recording of many chunks, cut anywhere.
#[test]
fn what_is_left_of_a_recording_can_be_checked() {
    let scene = scene();
    scene.run(&["check", "lost.txt", "--convert", "binary:whole"]).expect(0);
    let whole = fs::read(scene.file("whole")).expect("a file");
    for (name, bytes) in [
        ("no trailer", &whole[..whole.len() - 21]),
        ("half a trailer", &whole[..whole.len() - 5]),
        ("half a chunk", &whole[..whole.len() - 30]),
    ] {
        fs::write(scene.file("part"), bytes).expect("a file");
        let finished = scene.run(&["check", "part"]).expect(1);
        finished.says(&["\"part\": the history is truncated", "--partial checks what comes before"]);
        let found = name != "half a chunk";
        // Nothing can be concluded from an empty history.
        let finished = scene.run(&["check", "part", "--partial"]).expect(i32::from(!found));
        let finished = finished.says(&["warning: \"part\": the history is truncated"]);
        assert_eq!(finished.stdout.contains("lost update"), found, "{name}: {}", finished.stdout);
    }
    let mut damaged = whole.clone();
    damaged[whole.len() - 30] ^= 1;
    fs::write(scene.file("part"), damaged).expect("a file");
    scene.run(&["check", "part"]).expect(1).says(&["the history is damaged", "checksum"]);
}

#[test]
fn what_is_no_history_is_an_error_that_says_why() {
    let scene = scene();
    fs::write(scene.file("binary"), b"\x89PNG\r\n\x1a\n0123456789").expect("a file");
    fs::write(scene.file("newer"), b"\x89IBH\r\n\x1a\n\x07\0\0\0\0").expect("a file");
    for (name, text, message) in [
        ("empty", "", "there is nothing in it"),
        ("blank", "\n \n", "there is nothing in it"),
        ("prose", "hello, world", "this isn't a history"),
        ("text", "T1: r x = 5\nT2 r x = 5", "line 2, column 4: expected one of client=N"),
        ("truncated.json", "{\"type\":\"ok\",\"value\":[[\"r\",1,", "truncated"),
        (
            "bank.edn",
            "{:type :ok, :process 0, :f :transfer, :value {:from 1}}",
            "this is an operation \"transfer\"",
        ),
        (
            "bank.json",
            "{\"type\":\"ok\",\"process\":0,\"value\":{\"from\":1}}",
            "line 1: invalid type: map, expected a transaction",
        ),
    ] {
        scene.write(name, text);
        let finished = scene.run(&["check", name]).expect(1);
        assert_eq!(finished.stdout, "", "{name}");
        finished.says(&[&format!("isobench: error: \"{name}\": "), message]);
    }
    for (arguments, message) in [
        (&["check", "missing"][..], "\"missing\": could not read it: No such file"),
        (&["check", "."], "\".\": could not read it"),
        (&["check", "binary"], "isn't a recording of isobench"),
        (&["check", "newer"], "version 7"),
        (&["check", "lost.txt", "--format", "binary"], "isn't a recording of isobench"),
        (&["check", "lost.txt", "--format", "json"], "line 1: expected an operation"),
        (
            &["check", "lost.txt", "--format", "xml"],
            "unknown format \"xml\"; use binary, text, edn or json, or auto",
        ),
        (&["check", "lost.txt", "--promised", "eventual"], "unknown guarantee \"eventual\""),
        (&["check", "lost.txt", "--order", "time"], "use data, session or real-time"),
        (&["check", "lost.txt", "--convert", "lost.edn"], "use FORMAT:FILE"),
        (&["check", "lost.txt", "--convert", "edn:"], "the name of the file is missing"),
        (&["check", "lost.txt", "--convert", "edn:no/such/folder"], "could not write \"no/such/folder\""),
        (&["check", "lost.txt", "--json", "no/such/folder"], "could not write \"no/such/folder\""),
        (&["check", "lost.txt", "serial.txt", "--convert", "edn:x"], "--convert takes one history"),
        (&["check", "lost.txt", "--json", "-", "--dot", "-"], "only one of"),
        (&["check", "-", "-"], "standard input can be read only once"),
        (&["check"], "<FILE>"),
    ] {
        scene.run(arguments).expect(1).says(&[message]);
    }
    scene.write("groups", "T1: g t 5 = [1 2]\n");
    scene
        .run(&["check", "groups", "--convert", "edn:groups.edn"])
        .expect(1)
        .says(&["what T1 did: rows of groups"]);
    assert!(!scene.file("groups.edn").exists());
}

/// Values that no database would return are more likely a mistake in the history; with
/// `--complete`, they accuse the database.
#[test]
fn what_nobody_wrote_withholds_the_verdict() {
    let scene = Scene::new();
    for (text, finding, status, vouched) in [
        ("T1: w x = v1/1\nT2: r x = v1/77", "garbage read", 1, 3),
        ("T1: w x = 1\nT2: r x = 77", "garbage read", 1, 3),
        ("T1: a x += 1\nT2: l x = [1 5]", "garbage read", 1, 3),
        ("T1: a x += 1\nT2: l x = [1 1]", "duplicate write", 1, 3),
        ("T1: w x = 1, r x = init", "internal inconsistency", 1, 3),
        ("T1: r x = v0\nT2: r x = v1", "garbage read", 1, 0),
        ("T1: w x = 1\nT2 aborted: w x = 2\nT3: r x = 2", "G1a", 3, 3),
        ("T1: r x = v18446744073709551615/-9223372036854775808\nT2: w x = v18446744073709551615", "", 0, 0),
    ] {
        scene.write("history", text);
        let options = ["check", "history", "--promised", "serializable"];
        let finished = scene.run(&options).expect(status);
        assert!(finished.stdout.contains(finding), "{text}\n{}", finished.stdout);
        if status == 1 {
            finished.prints(&["VERDICT WITHHELD", "they prove nothing about the server"]).says(&[
                "isobench: error: the verdict is withheld: \"history\": the history does not account for what was read",
            ]);
        }
        let options = ["check", "history", "--promised", "serializable", "--complete"];
        scene.run(&options).expect(vouched);
    }
}

/// A value written by two transactions doesn't identify its writer, even with `--complete`.
#[test]
fn values_that_are_not_unique_are_an_error_in_the_history() {
    let scene = Scene::new();
    for text in [
        "T7 client=1: w x 5 = 3\nT9 client=2: w x 5 = 3",
        "T7 client=1 unknown: w x 5 = 3\nT9 client=1: w x 5 = 3\nT10: r x 5 = 3",
        "T7 client=1 unknown: a x 5 += 3\nT9 client=2: a x 5 += 3\nT10: l x 5 = [3]",
        "T7 client=1: i x 5 in 1\nT9 client=2: i x 5 in 1",
    ] {
        scene.write("history", text);
        for more in [&[][..], &["--complete"]] {
            let options =
                [&["check", "history", "--promised", "read committed", "--json", "out.json"], more].concat();
            let finished = scene.run(&options).expect(1);
            finished.says(&[
                "values that identify the writers of versions are not unique",
                "T7 (client 1)",
                "T9 (client ",
                "x 5",
            ]);
            let result: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
            let verdict = &result["histories"][0]["verdict"];
            assert_eq!(
                (&verdict["kept"], &verdict["not_contradicted"]),
                (&Value::Null, &serde_json::json!([]))
            );
            assert_eq!(verdict["withheld"][0]["doubtful"], true);
        }
    }
    // An attempt that failed may be repeated with its value.
    scene.write("history", "T7 aborted: w x 5 = 3\nT9: w x 5 = 3\nT10: r x 5 = 3");
    scene.run(&["check", "history", "--promised", "serializable"]).expect(0);
}

#[test]
fn initial_values_are_stated_or_assumed() {
    let scene = Scene::new();
    let transactions = "T1 10..20: r x = 100, w x = 1\nT2 30..40: r x = 1, w x = 2\n";
    let promised = ["check", "history", "--promised", "strict serializable"];
    scene.write("history", transactions);
    let finished = scene.run(&promised).expect(0);
    finished.prints(&["taken for the initial one", "T1 (client 0) read value 100 of x 0"]);
    scene.write("history", &format!("initial x = 100\n{transactions}"));
    let finished = scene.run(&promised).expect(0);
    assert!(!finished.stdout.contains("taken for"), "{}", finished.stdout);
    scene.write("history", &format!("initial x = 99\n{transactions}"));
    scene.run(&promised).expect(1).says(&["read value 100 of x 0, which no transaction wrote"]);
    // After a write, it isn't an initial value any more.
    scene.write("history", &format!("T3 1..2: w x = 7\n{transactions}"));
    scene.run(&promised).expect(1).says(&["read value 100 of x 0, which no transaction wrote"]);
    // A lost update of a stated value accuses; one that rests on an assumed value doesn't.
    let lost = "T1: r x = 100, w x = 1\nT2: r x = 100, w x = 2\n";
    for start in ["", "initial x = 100\n"] {
        scene.write("history", &format!("{start}{lost}"));
        let finished = scene.run(&["check", "history", "--promised", "serializable"]);
        finished.expect(if start.is_empty() { 1 } else { 3 });
    }
    scene.write("history", "{:type :initial, :value [[:r :x [1 2]]]}\n{:type :ok, :value [[:r :x [1 2]]]}");
    scene.run(&["check", "history", "--promised", "serializable"]).expect(0);
}

#[test]
fn of_an_empty_history_nothing_follows() {
    let scene = Scene::new();
    for text in ["[]", "; nothing\n", "# nothing\n", "T1 aborted: w x = 1", "T1:"] {
        scene.write("history", text);
        for promised in [&["check", "history"][..], &["check", "history", "--promised", "serializable"]] {
            scene.run(promised).expect(1).prints(&["VERDICT WITHHELD", "nothing was checked"]);
        }
    }
}

#[test]
fn a_file_that_is_cut_or_goes_on_is_no_history() {
    let scene = Scene::new();
    let one = "{\"type\":\"ok\",\"value\":[[\"w\",1,1]]}";
    for (text, message) in [
        (format!("[{one}"), "truncated: it ends in line 1, and the array isn't closed"),
        (format!("[{one}]\n]"), "line 2: expected the end of the file"),
        (format!("[{one}]\n{one}"), "line 2: expected the end of the file"),
        ("[{:type :ok, :value []}".to_owned(), "truncated"),
        ("[{:type :ok, :value []}]]".to_owned(), "line 1: expected the end of the file"),
        ("T1 10..5:".to_owned(), "line 1, column 9: T1 ends at 5, before it starts at 10"),
        ("T1:\nT1:".to_owned(), "T1 is already defined in line 1"),
    ] {
        scene.write("history", &text);
        scene.run(&["check", "history"]).expect(1).says(&[message]);
    }
}

#[test]
fn a_transaction_with_a_million_operations() {
    let scene = Scene::new();
    let mut text = "T1 client=0 1..2:".to_owned();
    for operation in 0..500_000 {
        let comma = if operation == 0 { "" } else { "," };
        write!(text, "{comma} r x {operation} = v0, w x {operation} = v1/1").expect("writes");
    }
    text += "\nT2 client=1 3..4: r x 77 = v1/1, w x 77 = v2/2\n";
    scene.write("long", &text);
    let options = ["check", "long", "--promised", "strict serializable"];
    scene.run(&options).expect(0).prints(&["1,000,002 operations"]);
}

#[test]
fn nobody_reads_the_report() {
    let scene = scene();
    let path: PathBuf = scene.file("lost.txt");
    let command = format!("{} check {} | true", isobench(), path.display());
    let mut shell = scene.program("/bin/sh".as_ref(), &["-c", &command]);
    let finished = Running::start(&mut shell).finish();
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}
