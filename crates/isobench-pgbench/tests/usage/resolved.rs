//! The requests of correct command lines.

use std::time::Duration;

use isobench_database::PartitionMethod;
use isobench_pgbench::options::{Benchmark, Common, Request};
use isobench_pgbench::version::Version;
use isobench_runner::Protocol;
use isobench_script::Variable;

use crate::outcome::Line;

fn benchmark(text: &str) -> (Common, Box<Benchmark>) {
    match Line::new(text).request(18) {
        (_, Ok(Request::Benchmark(common, benchmark))) => (common, benchmark),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn defaults_are_pgbench_s() {
    let (common, run) = benchmark("");
    assert_eq!((common.version, common.debug), (Version::V18, false));
    assert_eq!(common.connection.dbname.as_deref(), Some("nobody"));
    assert_eq!((run.clients, run.threads, run.transactions, run.duration), (1, 1, Some(10), None));
    assert_eq!((run.protocol, run.max_tries, run.log_prefix.as_str()), (Protocol::Simple, 1, "pgbench_log"));
    assert!(run.scripts.has_builtin());
    assert_eq!(run.scripts.weighted()[0].script.name, "<builtin: TPC-B (sort of)>");
    assert_eq!((run.scale, run.rate, run.latency_limit), (None, None, None));
}

#[test]
fn options_are_taken_over() {
    let (_, run) = benchmark(
        "-c 5 -j 9 -T 60 -M prepared -L 1.5 -R 250.5 -s 7 -P 3 -l --sampling-rate=0.25 --max-tries=0 --random-seed=-1 \
         -f ok.sql@3 -N -C -r -n --verbose-errors --failures-detailed --log-prefix=p --exit-on-abort -D a=b=c",
    );
    assert_eq!((run.clients, run.threads), (5, 5), "no more threads than clients");
    assert_eq!((run.transactions, run.duration), (None, Some(Duration::from_mins(1))));
    assert_eq!((run.protocol, run.latency_limit), (Protocol::Prepared, Some(Duration::from_micros(1500))));
    assert_eq!((run.rate, run.scale, run.sampling_rate), (Some(250.5), Some(7), Some(0.25)));
    assert_eq!((run.max_tries, run.seed), (0, u64::MAX));
    assert!(run.connect && run.per_command && run.no_vacuum && run.verbose_errors && run.failures_detailed);
    assert!(run.log && run.exit_on_abort && !run.vacuum_all && !run.continue_on_error);
    assert_eq!(run.defines, [("a".to_owned(), "b=c".to_owned())]);
    let names: Vec<(&str, u64)> = run
        .scripts
        .weighted()
        .iter()
        .map(|weighted| (weighted.script.name.as_str(), weighted.weight))
        .collect();
    assert_eq!(names, [("ok.sql", 3), ("<builtin: simple update>", 1)]);
}

#[test]
fn limits_that_are_none_are_left_out() {
    let (_, run) = benchmark("-L 0.0004 -R inf -l --sampling-rate=nan");
    assert_eq!((run.latency_limit, run.rate, run.sampling_rate), (None, None, Some(1.0)));
}

#[test]
fn tables_are_described() {
    let line = Line::new(
        "-i -I dtgvp -n -F 90 -s 3 -q --foreign-keys --partitions=4 --partition-method=HASH --tablespace=a \
         --index-tablespace=b --unlogged-tables",
    );
    let (_, Ok(Request::Initialize(_, options))) = line.request(18) else { panic!("initialises") };
    assert_eq!(options.steps.to_string(), "dtgp");
    assert_eq!((options.fillfactor, options.scale, options.partitions), (90, 3, 4));
    assert_eq!(options.partition_method, PartitionMethod::Hash);
    assert_eq!((options.tablespace.as_deref(), options.index_tablespace.as_deref()), (Some("a"), Some("b")));
    assert!(options.quiet && options.foreign_keys && options.unlogged);
}

#[test]
fn database_is_found_as_by_pgbench() {
    for (text, expected) in [
        ("a", "a"),
        ("PGDATABASE=b", "b"),
        ("PGDATABASE=b a", "a"),
        ("PGDATABASE= -U u", "nobody"),
        ("PGUSER=c -U u", "c"),
        ("-d x -U u", "x"),
        ("PGDATABASE=b ''", ""),
    ] {
        let (common, _) = benchmark(text);
        assert_eq!(common.connection.dbname.as_deref(), Some(expected), "{text}");
    }
    let (common, _) = benchmark("-h h -p 5 -U u --debug");
    let given = (common.connection.host, common.connection.port, common.connection.user);
    assert_eq!(given, (Some("h".to_owned()), Some("5".to_owned()), Some("u".to_owned())));
    assert!(common.debug);
    assert!(matches!(Line::new("-d x").request(16).1, Ok(Request::Benchmark(Common { debug: true, .. }, _))));
}

#[test]
fn defined_variables_win() {
    let start = |text: &str, name: &str| {
        let (_, run) = benchmark(text);
        let workload = run.scripts.workload(4, u64::MAX, &run.defines).expect("a mix");
        let slot = workload.symbols.lookup(name).expect("a variable");
        match workload.variables.get(slot) {
            Variable::Unset => "unset".to_owned(),
            Variable::Value(value) => format!("{value:?}"),
            Variable::Text(text) => text.clone(),
        }
    };
    assert_eq!(start("-S", "scale"), "Int(4)");
    assert_eq!(start("-S -s 9 -D scale=7 -D scale=8", "scale"), "8");
    assert_eq!(start("-S", "random_seed"), "Int(-1)");
    assert_eq!(start("-S -D random_seed=x", "random_seed"), "x");
    assert_eq!(start("-S -D client_id=3", "client_id"), "3");
}

#[test]
fn seeds_are_reported_and_drawn() {
    let seed = |text: &str| {
        let (said, request) = Line::new(text).request(18);
        let Ok(Request::Benchmark(_, run)) = request else { panic!("{text}") };
        (said, run.seed)
    };
    let (said, _) = seed("");
    assert_eq!(said, "");
    for how in ["time", "rand"] {
        let (said, number) = seed(&format!("--random-seed={how}"));
        assert_eq!(said, format!("pgbench: setting random seed to {number}\n"));
    }
    let (first, second) = (seed("--random-seed=rand").1, seed("--random-seed=rand").1);
    assert_ne!(first, second);
    let both = "pgbench: setting random seed to 5\npgbench: setting random seed to 9\n".to_owned();
    assert_eq!(seed("PGBENCH_RANDOM_SEED=5 --random-seed=9"), (both, 9));
}

#[test]
fn versions_stand_anywhere() {
    let version = |text: &str| match Line::new(text).request(18) {
        (_, Ok(Request::Benchmark(common, _))) => common.version.number().to_string(),
        (_, Ok(Request::Print(text))) => text.chars().skip(21).take(4).collect(),
        (_, other) => format!("{other:?}"),
    };
    assert_eq!(version("-S --compat 15 a"), "15");
    assert_eq!(version("--compat=19 --compat=16"), "16");
    assert_eq!(version("--compat=17 --version"), "17.1");
    assert!(version("--compat=14").contains("invalid value \\\"14\\\" for option --compat"));
    assert!(version("--compat").contains("invalid value \\\"\\\" for option --compat"));
    assert!(version("--comp 15").contains("unrecognized option '--comp'"));
    assert_eq!(version("-- --compat"), "18", "an operand");
}

#[test]
fn scripts_have_their_limits() {
    let (_, run) = benchmark(&"-S ".repeat(128));
    assert_eq!(run.scripts.total_weight(), 128);
    let error = |text: &str| Line::new(text).request(18).1.expect_err("is refused");
    assert_eq!(error(&"-S ".repeat(129)), "pgbench: error: at most 128 SQL scripts are allowed");
    // pgbench sends such bytes unchanged; a server would refuse them unless the database has
    // another encoding.
    let damaged = "pgbench: error: could not read file \"damaged.sql\": a command is not in UTF-8";
    assert_eq!(error("-f damaged.sql"), damaged);
}
