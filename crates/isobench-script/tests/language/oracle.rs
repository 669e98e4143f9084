//! The real pgbench as an oracle. It talks to a fake server, so only the program is needed; without
//! it the tests are skipped.

use crate::support::execute::{Client, Execution, SEED, execute};
use crate::support::pgbench::Pgbench;
use crate::support::{blocks, expressions};
use isobench_script::{Mix, Streams, Symbols, Weighted, builtins, find_builtin, parse, split_weight};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

/// The oracle, or a printed reason to skip the test.
fn oracle(test: &str) -> Option<Pgbench> {
    match Pgbench::find() {
        Ok(pgbench) => Some(pgbench),
        Err(reason) => {
            isobench_testkit::installed::skip(test, &reason);
            None
        }
    }
}

/// Executes one script once, as `pgbench -t 1` does.
fn ours(text: &str) -> Result<Execution, String> {
    let mut symbols = Symbols::new();
    let script = parse("x.sql", text, &mut symbols).map_err(|error| error.to_string())?;
    let mut client = Client::new(0, 1, &mut symbols);
    Ok(execute(&script, &symbols, &mut client))
}

#[test]
fn errors_are_pgbench_s() {
    let Some(pgbench) = oracle("errors_are_pgbench_s") else { return };
    let mut different = 0;
    for block in blocks::read("errors.txt") {
        if block.needs_17() && pgbench.version < 17 {
            continue;
        }
        let theirs = pgbench.once(&block.script, &[]).error.unwrap_or_default();
        if theirs != block.expected {
            eprintln!("script:\n{}\ntheirs:\n{theirs}\nours:\n{}\n", block.script, block.expected);
            different += 1;
        }
    }
    assert_eq!(different, 0, "different messages");
}

#[test]
fn runs_are_pgbench_s() {
    let Some(pgbench) = oracle("runs_are_pgbench_s") else { return };
    for block in blocks::read("run.txt").into_iter().chain(blocks::read("parse.txt")) {
        if block.needs_17() && pgbench.version < 17 || block.remark.contains("ours") {
            continue;
        }
        let ours = ours(&block.script).expect("the golden file has scripts that parse");
        let theirs = pgbench.once(&block.script, &["-r"]);
        let sent = pgbench.log.take();
        let context = format!("script:\n{}", block.script);
        assert_eq!(theirs.debug, ours.debug, "{context}");
        assert_eq!(sent, ours.sent, "{context}");
        assert_eq!(theirs.error, ours.error, "{context}");
        if theirs.error.is_none() {
            check_report(&theirs.stdout, &block.script);
            check_extended(&pgbench, &block.script);
        }
    }
}

/// The per-command report shows every command's text.
fn check_report(stdout: &str, script: &str) {
    let Some((_, report)) = stdout.split_once("statement latencies in milliseconds and failures:\n") else {
        panic!("no report in:\n{stdout}");
    };
    let commands = parse("x.sql", script, &mut Symbols::new()).expect("parsed before").commands;
    let mut rest = report;
    for command in commands {
        // "   latency   failures  text"; the text may span several lines.
        let text = rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let text = text.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        // One blank in pgbench 18, two in 16 and earlier.
        let text = text.trim_start_matches(' ');
        let Some(after) = text.strip_prefix(command.text.as_str()) else {
            panic!("{:?} isn't shown at the start of {text:?}", command.text);
        };
        rest = after.strip_prefix('\n').expect("the text ends with its line");
    }
    assert_eq!(rest, "");
}

/// Checks the numbered parameters sent by the extended protocol.
fn check_extended(pgbench: &Pgbench, script: &str) {
    let commands = parse("x.sql", script, &mut Symbols::new()).expect("parsed before").commands;
    if commands.iter().any(|command| command.kind.name() == "if") {
        return;
    }
    let ours: Vec<String> = commands
        .into_iter()
        .filter_map(|command| match command.kind {
            isobench_script::CommandKind::Sql(sql) => Some(sql.parameterized),
            _ => None,
        })
        .collect();
    pgbench.once(script, &["-M", "extended"]);
    assert_eq!(pgbench.log.take(), ours, "script:\n{script}");
}

#[test]
fn random_expressions_give_pgbench_s_values() {
    let Some(pgbench) = oracle("random_expressions_give_pgbench_s_values") else { return };
    let mut runner = TestRunner::default();
    let strategy = expressions::expression();
    let mut symbols = Symbols::new();
    let setup = parse("x.sql", expressions::SETUP, &mut symbols).expect("valid");
    let mut client = Client::new(0, 1, &mut symbols);
    execute(&setup, &symbols, &mut client);
    let (mut good, mut bad) = (String::from(expressions::SETUP), Vec::new());
    for _ in 0..1500 {
        let text = strategy.new_tree(&mut runner).expect("generates").current();
        let line = format!("\\set v debug({text})\n");
        let script = parse("x.sql", &line, &mut symbols).unwrap_or_else(|error| panic!("{error}"));
        let before = client.rng.clone();
        // A line's success can depend on the numbers drawn before it.
        if execute(&script, &symbols, &mut client).error.is_none() {
            good.push_str(&line);
        } else {
            bad.push(format!("{}{line}", expressions::SETUP));
            client.rng = before;
        }
    }
    let mine = ours(&good).expect("parses");
    let theirs = pgbench.once(&good, &[]);
    for (theirs, mine) in theirs.debug.iter().zip(&mine.debug) {
        let number = theirs.split(['=', ')']).nth(2).and_then(|number| number.parse::<usize>().ok());
        let line = number.and_then(|number| good.lines().nth(number - 1)).unwrap_or("?");
        assert_eq!(theirs, mine, "line {line}");
    }
    assert_eq!((theirs.debug.len(), theirs.error), (mine.debug.len(), None));
    assert!(mine.error.is_none() && mine.debug.len() > 500, "{} values", mine.debug.len());
    assert!(bad.len() > 50, "{} expressions fail", bad.len());
    for text in bad.iter().take(120) {
        let mine = ours(text).expect("parses");
        let theirs = pgbench.once(text, &[]);
        assert_eq!((theirs.debug, theirs.error), (mine.debug, mine.error), "script:\n{text}");
    }
}

#[test]
fn clients_have_pgbench_s_streams() {
    let Some(pgbench) = oracle("clients_have_pgbench_s_streams") else { return };
    let text = "\\set v debug(:client_id * 1000000 + random(1, 999999))\n";
    pgbench.write("x.sql", text);
    let clients = 3;
    let mut theirs = pgbench.run(&["-c", "3", "-j", "1", "-t", "4", "-f", "x.sql"]).debug;
    let mut mine = Vec::new();
    for id in 0..clients {
        let mut symbols = Symbols::new();
        let script = parse("x.sql", text, &mut symbols).expect("valid");
        let mut client = Client::new(id, clients, &mut symbols);
        for _ in 0..4 {
            mine.append(&mut execute(&script, &symbols, &mut client).debug);
        }
    }
    theirs.sort();
    mine.sort();
    assert_eq!(theirs, mine);
}

#[test]
fn scripts_are_chosen_as_by_pgbench() {
    let Some(pgbench) = oracle("scripts_are_chosen_as_by_pgbench") else { return };
    let weights = [3_u64, 0, 1, 7];
    let mut options: Vec<String> =
        ["-c", "2", "-j", "2", "-t", "40", "-l", "--log-prefix=choice"].map(str::to_owned).to_vec();
    let mut symbols = Symbols::new();
    let mut scripts = Vec::new();
    for (index, weight) in weights.iter().enumerate() {
        let name = format!("{index}.sql");
        pgbench.write(&name, "\\set v 1\n");
        options.extend(["-f".to_owned(), format!("{name}@{weight}")]);
        let script = parse(&name, "\\set v 1\n", &mut symbols).expect("valid");
        scripts.push(Weighted { script, weight: *weight });
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    pgbench.run(&options);
    // Client, transaction number, latency, script number, time.
    let log = read_log(&pgbench, "choice");
    let mix = Mix::new(scripts).expect("valid");
    let mut streams = Streams::new(SEED);
    let (_, _, _) = (streams.split(), streams.split(), streams.number());
    for worker in 0..2 {
        let mut choice = streams.split();
        let (_, _) = (streams.split(), streams.split());
        let mine: Vec<usize> = (0..40).map(|_| mix.choose(&mut choice)).collect();
        let theirs: Vec<usize> = log
            .iter()
            .filter(|fields| fields[0] == worker)
            .map(|fields| usize::try_from(fields[3]).expect("an index"))
            .collect();
        assert_eq!(theirs, mine);
    }
}

/// The logs of a run, one file per thread with one line per transaction, split into numbers.
fn read_log(pgbench: &Pgbench, prefix: &str) -> Vec<Vec<i64>> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(pgbench.folder()).expect("readable").flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let text = std::fs::read_to_string(entry.path()).expect("readable");
            let numbers = |line: &str| line.split(' ').filter_map(|field| field.parse().ok()).collect();
            lines.extend(text.lines().map(numbers));
        }
    }
    assert!(!lines.is_empty(), "pgbench wrote a log");
    lines
}

#[test]
fn log_is_sampled_as_by_pgbench() {
    let Some(pgbench) = oracle("log_is_sampled_as_by_pgbench") else { return };
    pgbench.write("x.sql", "\\set v 1\n");
    pgbench.run(&["-t", "50", "-f", "x.sql", "-l", "--log-prefix=sample", "--sampling-rate=0.3"]);
    let theirs: Vec<i64> = read_log(&pgbench, "sample").iter().map(|fields| fields[1]).collect();
    let mut streams = Streams::new(SEED);
    let (_, _, _, _) = (streams.split(), streams.number(), streams.split(), streams.split());
    let mut sample = streams.split();
    let mine: Vec<i64> = (1..=50).filter(|_| sample.double() <= 0.3).collect();
    assert_eq!(theirs, mine);
}

#[test]
fn schedule_is_pgbench_s() {
    let Some(pgbench) = oracle("schedule_is_pgbench_s") else { return };
    pgbench.write("x.sql", "\\set v 1\n");
    pgbench.run(&["-t", "30", "-f", "x.sql", "-l", "--log-prefix=rate", "--rate=300"]);
    // Latency is measured from the scheduled start, so end minus latency is the schedule, no matter
    // how late the machine was; rounding accounts for a microsecond or two.
    let starts: Vec<i64> = read_log(&pgbench, "rate")
        .iter()
        .map(|fields| fields[4] * 1_000_000 + fields[5] - fields[2])
        .collect();
    assert_eq!(starts.len(), 30);
    let mut streams = Streams::new(SEED);
    let (_, _, _) = (streams.split(), streams.number(), streams.split());
    let mut schedule = streams.split();
    schedule.poisson(1.0);
    for pair in starts.windows(2) {
        let mine = schedule.poisson(1_000_000.0 / 300.0);
        assert!((pair[1] - pair[0] - mine).abs() <= 3, "{} instead of {mine}", pair[1] - pair[0]);
    }
}

#[test]
fn texts_of_variables_are_read_as_by_pgbench() {
    let Some(pgbench) = oracle("texts_of_variables_are_read_as_by_pgbench") else { return };
    let text = "\\set y debug(:v)\nselect :v;\n";
    for value in [
        "1",
        "01",
        "-5",
        "+5",
        " 5",
        "5 ",
        "9223372036854775808",
        "-9223372036854775808",
        "1.50",
        "1e3",
        "1e400",
        "nan",
        "-inf",
        "infinity",
        "0x10",
        "n",
        "nu",
        "NULL",
        "nullx",
        "tr",
        "TRUE",
        "truex",
        "fa",
        "no",
        "of",
        "on",
        "o",
        "ye",
        "1x",
        "x",
        "é",
        ".5",
        "5.",
        "+",
        "1e",
        "1_000",
        "a b",
    ] {
        let mut symbols = Symbols::new();
        let script = parse("x.sql", text, &mut symbols).expect("valid");
        let mut client = Client::new(0, 1, &mut symbols);
        client.variables.set_text(symbols.intern("v"), value);
        let mine = execute(&script, &symbols, &mut client);
        let theirs = pgbench.once(text, &["-D", &format!("v={value}")]);
        let sent = pgbench.log.take();
        assert_eq!(
            (theirs.debug, theirs.error, sent),
            (mine.debug, mine.error, mine.sent),
            "value {value:?}"
        );
    }
}

#[test]
fn builtins_are_pgbench_s() {
    let Some(pgbench) = oracle("builtins_are_pgbench_s") else { return };
    for builtin in builtins() {
        let shown = pgbench.shown(builtin.name);
        assert_eq!(shown, format!("-- {}: {}\n{}\n", builtin.name, builtin.description, builtin.text));
    }
    for prefix in ["s", "si", "sx", "", "t", "select-only", "list@2", "si@", "si@x", "si@-1"] {
        let ours = match split_weight(prefix) {
            Err(error) => Some(error.to_string()),
            Ok((name, _)) => find_builtin(name).err().map(|error| error.to_string()),
        };
        let theirs = pgbench.run(&["-t", "1", "-b", prefix]).error.unwrap_or_default();
        // A valid name gets as far as the connection.
        let theirs = theirs.lines().next().filter(|_| ours.is_some()).map(str::to_owned);
        assert_eq!(theirs, ours, "-b {prefix}");
    }
}
