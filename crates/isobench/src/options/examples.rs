//! Three examples for each command, below its help.

use clap::Command;

/// An example: what it does, and the words after `isobench`.
type Example = (&'static str, &'static str);

/// The examples, by command; a command below another one has both names.
const EXAMPLES: [(&str, [Example; 3]); 27] = [
    (
        "compare",
        [
            ("which level to use, on an embedded PostgreSQL", "compare"),
            (
                "your own transactions, on tables made for it",
                "compare -f transfer.sql --setup tables.sql --levels rc,ser",
            ),
            ("until ratios are known to 2 %, on a server", "compare -h db.example.org -d test --resolve 2%"),
        ],
    ),
    (
        "advise",
        [
            ("which of SmallBank's transactions needs which level", "advise -w smallbank"),
            (
                "your own transactions, with the levels in a file",
                "advise -f order.sql@5 -f report.sql --setup shop.sql --write advice.toml",
            ),
            (
                "what an application was recorded to do, on a copy of its database",
                "advise isobench.capture --copy-from dbname=shop",
            ),
        ],
    ),
    (
        "audit",
        [
            ("what each level of an embedded PostgreSQL gives", "audit"),
            ("longer, at one level of a server", "audit -h db.example.org -d test --levels ser --time 60"),
            ("lost updates and write skew in a shop", "audit -w orders --clients 16"),
        ],
    ),
    (
        "probe",
        [
            ("the matrix of levels and anomalies", "probe"),
            ("with every step", "probe --verbose --levels rr,ser"),
            ("a server of your own", "probe -h db.example.org -d test"),
        ],
    ),
    (
        "scripts",
        [
            (
                "of what was recorded, on a copy of the database",
                "scripts shop.capture -o shop --copy-from dbname=shop",
            ),
            ("on tables of your own", "scripts shop.capture -o shop --setup shop.sql"),
            (
                "all transactions of a request in one script",
                "scripts shop.capture -o shop --setup shop.sql --scope request",
            ),
        ],
    ),
    (
        "check",
        [
            (
                "what a recorded history proves",
                "check isobench-history/serializable-8-clients-round-1.history",
            ),
            ("whether it keeps a level", "check run.history --promised serializable"),
            ("a history of Elle", "check history.edn"),
        ],
    ),
    (
        "report",
        [
            ("the last result again", "report isobench-results/latest"),
            ("before and after a change", "report before.json after.json --fail-on-regression 5%"),
            (
                "tables for DuckDB, with every recorded transaction",
                "report --tables tables --transactions recordings",
            ),
        ],
    ),
    (
        "results",
        [
            ("what there is", "results"),
            ("mark the newest with its commit", "results tag latest nightly commit=4f2a1c"),
            ("what the last change did", "results compare latest~1 latest"),
        ],
    ),
    (
        "results list",
        [
            ("what is in isobench-results", "results list"),
            ("in another folder", "results list --folder nightly"),
            ("for a program", "results list --json"),
        ],
    ),
    (
        "results tag",
        [
            ("name the newest one", "results tag latest before-upgrade"),
            ("with its commit", "results tag latest commit=4f2a1c"),
            ("the one before it, twice", "results tag latest~1 nightly server=16.14"),
        ],
    ),
    (
        "results untag",
        [
            ("take a name away", "results untag latest before-upgrade"),
            ("by the name itself", "results untag before-upgrade before-upgrade"),
            ("several tags", "results untag latest nightly commit=4f2a1c"),
        ],
    ),
    (
        "results compare",
        [
            ("what the last change did", "results compare latest~1 latest"),
            ("two that are tagged", "results compare before-upgrade after-upgrade"),
            ("for a script: status 3 if it is worse", "results compare main latest --fail-on-regression 5%"),
        ],
    ),
    (
        "results prune",
        [
            ("what could go, if the newest 20 are kept", "results prune --keep 20"),
            ("what is older than a month", "results prune --older-than 30d"),
            ("remove it", "results prune --keep 20 --older-than 30d --yes"),
        ],
    ),
    (
        "trend",
        [
            ("how the rates went, and where they changed", "trend tps"),
            ("what serializable costs, by commit", "trend serializable.ratio --by tag:commit"),
            ("as a page to send", "trend latency_p99_ms --html trend.html"),
        ],
    ),
    (
        "matrix",
        [
            ("of all results in a folder, into its index.html", "matrix results-of-servers"),
            ("into another file", "matrix results-of-servers --html public/index.html"),
            ("of what compare has saved here", "matrix isobench-results"),
        ],
    ),
    (
        "check-result",
        [
            ("a result that somebody sent", "check-result postgresql-18.json"),
            ("all of a folder", "check-result results-of-servers/*.json"),
            ("the newest one of one's own", "check-result isobench-results/latest/result.json"),
        ],
    ),
    (
        "run",
        [
            ("as pgbench, with retries accounted for", "run -c 8 -T 10 --max-tries 0 --isolation ser test"),
            ("a script at a rate", "run -f transfer.sql -R 500 -L 50 -T 60 test"),
            ("with a verdict", "run -w registers --isolation rr -c 8 -T 10"),
        ],
    ),
    (
        "race",
        [
            (
                "one request twice at the same time, on a copy of the database",
                "race --copy-from dbname=shop --serve './manage.py runserver 8000' --ready 8000 -- 'curl -X POST \
                 localhost:8000/order -d item=1'",
            ),
            (
                "two tests, on a database that may be changed",
                "race -d shop_test --on-this-database shop_test -- pytest test_order.py --and pytest test_cancel.py",
            ),
            ("which requests to try, from a recording", "race isobench.capture --copy-from dbname=shop"),
        ],
    ),
    (
        "record",
        [
            ("the test suite of an application", "record -h db.example.org -d shop -- pytest"),
            ("a service that is started elsewhere", "record --listen 127.0.0.1:6432 -d service=shop"),
            ("what was recorded", "record --show isobench.capture"),
        ],
    ),
    (
        "init",
        [
            ("pgbench's tables, ten branches", "init -s 10 test"),
            ("those of a checked workload", "init --workload orders test"),
            ("without vacuum, in partitions", "init -n --partitions 4 test"),
        ],
    ),
    (
        "workloads",
        [
            ("all of them", "workloads"),
            ("what one promises, its tables and scripts", "workloads orders"),
            ("its files, to be changed", "workloads orders --save my-orders"),
        ],
    ),
    (
        "plans",
        [
            ("the published experiments", "plans"),
            ("the plan of one", "plans sibench"),
            ("to change it", "plans durability > my.toml"),
        ],
    ),
    (
        "peers",
        [
            ("rank 0 of two machines", "peers --peers 10.0.0.1:7001,10.0.0.2:7001 --rank 0"),
            ("the other one", "peers --peers 10.0.0.1:7001,10.0.0.2:7001 --rank 1"),
            ("ranks from a launcher, in the job of srun or mpiexec", "peers --peers-file machines.txt"),
        ],
    ),
    (
        "server",
        [
            ("an embedded PostgreSQL, for psql and others", "server"),
            ("another version", "server --server-version 16"),
            ("with a setting", "server --server-setting shared_buffers=1GB"),
        ],
    ),
    (
        "help",
        [
            ("what there is", "help"),
            ("of a command", "help compare"),
            ("a page of the manual", "help anomalies"),
        ],
    ),
    (
        "completions",
        [
            ("bash, in ~/.bashrc: source <(…)", "completions bash"),
            ("zsh, in ~/.zshrc: source <(…)", "completions zsh"),
            ("fish: … | source", "completions fish"),
        ],
    ),
    (
        "man",
        [
            ("to read it: … | man -l -", "man"),
            ("pages of all commands", "man ~/.local/share/man/man1"),
            ("for a package", "man debian/man"),
        ],
    ),
];

/// The program with the examples below the help of each command.
pub fn with_examples(program: Command) -> Command {
    EXAMPLES.iter().fold(program, |program, (names, examples)| add(program, names, &text(examples)))
}

/// Adds the examples to the command with these names below this one.
fn add(command: Command, names: &str, examples: &str) -> Command {
    if let Some((name, rest)) = names.split_once(' ') {
        return command.mut_subcommand(name, |command| add(command, rest, examples));
    }
    command.mut_subcommand(names, |command| {
        let before = command.get_after_help().map(ToString::to_string);
        let all = before
            .filter(|before| !before.is_empty())
            .map_or_else(|| examples.to_owned(), |before| format!("{examples}\n\n{before}"));
        // Without anything else, clap takes the text of the short help for the long one.
        let long = command.get_after_long_help().is_some();
        let command = command.after_help(all);
        if long { command.after_long_help(examples.to_owned()) } else { command }
    })
}

fn text(examples: &[Example]) -> String {
    let lines = examples.iter().map(|(what, words)| format!("  # {what}\n  isobench {words}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"))
}
