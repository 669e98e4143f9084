//! Several machines that measure as one: processes on loopback, and in network namespaces.

use std::path::Path;
use std::process::Command;

use isobench_testkit::network::{MACHINES, Network};
use isobench_testkit::ports::free_addresses;
use rustix::process::Signal;
use serde_json::Value;

use crate::compare::words;
use crate::durability::program as program_of_root;
use crate::snapshots::{LIMITS, PAY, RAISE, logical, made};
use crate::support::document::{self, count, rounds};
use crate::support::named::Database;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::{skip, wait_for};

/// Adds what makes a command one of several machines.
fn machine(mut command: Command, rank: usize, addresses: &str) -> Running {
    command.args(["--peers", addresses, "--rank", &rank.to_string()]);
    command.env("ISOBENCH_PEERS_SECRET", "test");
    Running::start(&mut command)
}

/// Starts the same command on so many machines on loopback.
fn start(scene: &Scene, database: &Database, number: usize, options: &str) -> Vec<Running> {
    let addresses = free_addresses(number).join(",");
    let one = |rank| machine(database.isobench(scene, &words(options)), rank, &addresses);
    (0..number).map(one).collect()
}

/// Runs the same command on so many machines on loopback, to success.
fn run(scene: &Scene, database: &Database, number: usize, options: &str) -> Finished {
    let mut finished = start(scene, database, number, options).into_iter().map(Running::finish);
    let zero = finished.next().expect("rank 0");
    for other in finished {
        assert_eq!(other.stdout, "", "rank 0 has the result");
        other.expect(0).says(&["works for rank 0 ("]);
    }
    zero
}

/// The commits of all machines in a round, which are those of the round.
fn commits(round: &Value) -> Vec<u64> {
    let machines = round["machines"].as_array().expect("machines");
    let commits: Vec<u64> = machines.iter().map(|machine| count(machine, "/committed")).collect();
    assert_eq!(commits.iter().sum::<u64>(), count(round, "/transactions/committed"));
    let attempts: u64 = machines.iter().map(|machine| count(machine, "/attempts")).sum();
    assert_eq!(attempts, count(round, "/attempts/started"));
    commits
}

/// Asserts that the server counted as many commits as all machines together.
fn assert_server_agrees(round: &Value) {
    let compared = round["server"]["comparison"].as_array().expect("the server's counts");
    for count in compared {
        assert_eq!(count["agrees"], true, "{count:#}");
    }
}

/// A script whose effect on the tables depends on which client does what, and its tables.
fn write_script(scene: &Scene) {
    scene.write(
        "own.sql",
        "\\set id random(1, 20)\n\\set part random(1, 1000)\nBEGIN;\n\
         UPDATE t SET v = v + :part * (:client_id + 1) WHERE id = :id;\nEND;\n",
    );
    scene.write(
        "setup.sql",
        "CREATE TABLE t (id int PRIMARY KEY, v bigint NOT NULL);\nINSERT INTO t SELECT i, 0 FROM generate_series(1, \
         20) AS i;\n",
    );
}

#[test]
fn clients_do_the_same_on_one_machine_and_on_three() {
    let Some(database) = Database::new("clients_do_the_same_on_one_machine_and_on_three") else { return };
    let scene = Scene::new();
    write_script(&scene);
    let options = "compare -f own.sql --setup setup.sql --levels rc --clients 7 --transactions 40 --warmup 0 --rounds \
        1 --seed 5 --keep --details --json out.json";
    let sums = "select string_agg(id || ':' || v, ' ' order by id) from isobench.t";
    database.run(&scene, &words(options)).expect(0);
    let alone = document::read(&scene, "out.json");
    let expected = database.value(sums);
    run(&scene, &database, 3, options).expect(0).prints(&["machine", "clock ±"]);
    let together = document::read(&scene, "out.json");
    assert_eq!(database.value(sums), expected, "the same transactions");
    for (alone, together) in rounds(&alone).zip(rounds(&together)) {
        assert_eq!(count(alone, "/transactions/committed"), 280);
        assert_eq!(alone["transactions"], together["transactions"]);
        assert_eq!(commits(together), [120, 80, 80], "7 clients are 3, 2 and 2");
        assert_eq!(together["verdict"]["kept"], true, "{:#}", together["verdict"]);
        assert_eq!(alone["verdict"]["examined"]["committed"], together["verdict"]["examined"]["committed"]);
        assert_server_agrees(together);
    }
}

/// What the lines `--@` say stays on each machine, and all check it together.
#[test]
fn what_goes_wrong_between_machines_is_found() {
    let Some(database) = Database::new("what_goes_wrong_between_machines_is_found") else { return };
    let scene = Scene::new();
    let options = "compare -w orders --levels rc,ser --clients 3 --transactions 200 --warmup 0 --rounds 1 --try 0 \
        --settle 0 --json out.json";
    run(&scene, &database, 3, options).expect(0);
    let document = document::read(&scene, "out.json");
    let mut wrong = Vec::new();
    for round in rounds(&document) {
        let verdict = &round["verdict"];
        assert_eq!(verdict["kept"], true, "{verdict:#}");
        assert_eq!(commits(round).iter().sum::<u64>(), count(verdict, "/examined/committed"));
        wrong.extend(verdict["anomalies"].as_array().into_iter().flatten().cloned());
    }
    // Each machine has one client, so what it loses is lost to one of another machine.
    assert!(!wrong.is_empty(), "{document:#}");
}

/// Rank 0 reads the log of the writes of all, and the transactions of all are asked for their snapshots.
#[test]
fn snapshots_of_all_machines_are_compared_with_the_log() {
    let Some(database) = logical("snapshots_of_all_machines_are_compared_with_the_log") else { return };
    let scene = Scene::new();
    for (name, text) in [("limits.sql", LIMITS), ("pay.sql", PAY), ("raise.sql", RAISE)] {
        scene.write(name, text);
    }
    let options = "compare -f pay.sql -f raise.sql --setup limits.sql --levels rr,ser --clients 6 --transactions 20 \
        --warmup 0 --rounds 1 --seed 5 --try 0 --observe snapshot --json out.json";
    run(&scene, &database, 3, options).expect(0);
    let document = document::read(&scene, "out.json");
    for round in rounds(&document) {
        let committed = commits(round);
        let verdict = &round["verdict"];
        assert_eq!(verdict["kept"], true, "{verdict:#}");
        let (dark, cleared) = (count(verdict, "/cleared/dark"), count(verdict, "/cleared/cleared"));
        assert_eq!((dark, verdict.pointer("/cleared/why_not")), (cleared, None), "{verdict:#}");
        // Half of the transactions read something unseen, on each of the machines.
        let own = committed.iter().copied().max().unwrap_or_default();
        assert!(dark > own, "{dark} of {committed:?}");
    }
    assert_eq!(made(&database), "");
}

/// A command that runs a program with its clock ahead by so many seconds; `None` after saying why
/// that is impossible here.
fn ahead(test: &str, seconds: i64, program: &Path) -> Option<Command> {
    let mut unshare = Command::new("unshare");
    unshare.args(["--time", "--monotonic", &seconds.to_string()]);
    let mut command = Command::new("unshare");
    command.args(unshare.get_args());
    let tried = unshare.arg("true").output().map_err(|error| error.to_string());
    let tried = tried.and_then(|output| {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    });
    if let Err(why) = tried {
        skip(test, &format!("no process can have a clock of its own here (root, unshare --time): {why}"));
        return None;
    }
    command.arg(program);
    Some(command)
}

/// The same command, run by another one to which its program is an argument.
fn run_by(mut outer: Command, own: &Command, scene: &Scene) -> Command {
    outer.args(own.get_args()).current_dir(scene.file(""));
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

#[test]
fn clocks_that_differ_accuse_nobody() {
    let name = "clocks_that_differ_accuse_nobody";
    let Some(database) = Database::new(name) else { return };
    let scene = Scene::new();
    let addresses = free_addresses(3).join(",");
    let options = "audit --clients 6 --time 1 --json out.json";
    let mut running = Vec::new();
    for (rank, seconds) in [(0, 0), (1, 1000), (2, -1)] {
        let own = database.isobench(&scene, &words(options));
        let Some(outer) = ahead(name, seconds, own.get_program().as_ref()) else { return };
        running.push(machine(run_by(outer, &own, &scene), rank, &addresses));
    }
    running.into_iter().map(Running::finish).for_each(|finished| drop(finished.expect(0)));
    let document = document::read(&scene, "out.json");
    for round in rounds(&document) {
        assert!(commits(round).iter().all(|commits| *commits > 0), "{round:#}");
        assert_eq!(round["verdict"]["kept"], true, "{:#}", round["verdict"]);
        for machine in round["machines"].as_array().expect("machines") {
            assert!(document::number(machine, "/clock_within_ms") < 1000.0, "{machine:#}");
        }
    }
}

#[test]
fn who_does_not_fit_the_others_is_refused_before_anything_is_touched() {
    let Some(database) = Database::new("who_does_not_fit_the_others_is_refused_before_anything_is_touched")
    else {
        return;
    };
    let scene = Scene::new();
    let addresses = free_addresses(2).join(",");
    let line = |seed: u32| {
        format!(
            "compare -b select-only --clients 2 --time 1 --warmup 0 --rounds 1 --peers-wait 5 --seed {seed}"
        )
    };
    let one = |rank: usize| {
        let seed = u32::try_from(rank).expect("small");
        machine(database.isobench(&scene, &words(&line(seed))), rank, &addresses)
    };
    let running: Vec<Running> = (0..2).map(one).collect();
    for finished in running.into_iter().map(Running::finish) {
        finished.expect(1).says(&["was given another plan, seed or options than this machine"]);
    }
    assert_eq!(database.inventory(), "");
    let list = "--peers 127.0.0.1:1,127.0.0.1:2 --rank 0";
    for (options, part) in [
        (format!("compare {list}"), "--peers: an embedded server can't be reached by other machines"),
        (format!("run {list}"), "--peers: an embedded server can't be reached by other machines"),
        (format!("run {list} -h nowhere -l -t 1 -n"), "--log: isn't written where several machines"),
        ("compare --rank 1".to_owned(), "--rank: says which of several machines this is"),
        ("compare -h nowhere --peers a:1,b:2".to_owned(), "Say it by --rank NUM"),
        (format!("compare -h nowhere --clients 8,1 {list}"), "--clients: 1 are fewer than the 2 machines"),
    ] {
        scene.run(&words(&options)).expect(1).says(&[part]);
    }
}

#[test]
fn those_that_wait_hear_why_rank_0_refuses() {
    let Some(database) = Database::new("those_that_wait_hear_why_rank_0_refuses") else { return };
    let scene = Scene::new();
    scene.write("plan.toml", "workload = [\"orders\"]\n");
    for (command, wrong, why) in [
        ("compare --plan plan.toml", "compare --plan none.toml", "none.toml"),
        ("run -b select-only -n -c 3 -t 1", "run -f none.sql -n -c 3 -t 1", "none.sql"),
    ] {
        let addresses = free_addresses(3).join(",");
        let start = |line: &str, rank| machine(database.isobench(&scene, &words(line)), rank, &addresses);
        let waiting: Vec<Running> = (1..3).map(|rank| start(command, rank)).collect();
        for one in &waiting {
            one.wait_for_stderr("waiting for the others");
        }
        start(wrong, 0).finish().expect(1).says(&[why]);
        for waiting in waiting.into_iter().map(Running::finish) {
            waiting.expect(1).says(&["rank 0 (", "can't take part: ", why]);
        }
    }
    assert_eq!(database.inventory(), "");
}

#[test]
fn another_database_is_refused() {
    let name = "another_database_is_refused";
    let (Some(one), Some(other)) = (Database::new(name), Database::new(name)) else { return };
    let scene = Scene::new();
    let addresses = free_addresses(2).join(",");
    let line = words("compare -b select-only --clients 2 --time 1 --warmup 0 --rounds 1");
    let zero = machine(one.isobench(&scene, &line), 0, &addresses);
    let first = machine(other.isobench(&scene, &line), 1, &addresses);
    // Rank 1's own database has no such schema.
    zero.finish().expect(1).says(&["rank 1 (", "isobench"]);
    first.finish().expect(2).says(&["rank 0 (", "has ended early"]);
    assert_eq!((one.inventory(), other.inventory()), (String::new(), String::new()));
}

#[test]
fn a_run_on_several_machines_has_one_summary() {
    let Some(database) = Database::new("a_run_on_several_machines_has_one_summary") else { return };
    let scene = Scene::new();
    database.run(&scene, &words("init --workload registers")).expect(0);
    let options = "run -w registers --isolation rr -c 5 -t 30 --max-tries 0 -L 10000 --json out.json";
    let zero = run(&scene, &database, 2, options).expect(0);
    zero.prints(&[
        "number of clients: 5",
        "number of transactions actually processed: 150/150",
        "contradicts snapshot isolation in 150 committed",
    ]);
    let document = document::read(&scene, "out.json");
    let round = rounds(&document).next().expect("a round");
    assert_eq!(commits(round), [90, 60]);
    assert_eq!(count(round, "/verdict/examined/committed"), 150);
}

#[test]
fn whoever_is_interrupted_all_end() {
    let Some(database) = Database::new("whoever_is_interrupted_all_end") else { return };
    for interrupted in 0..2 {
        let scene = Scene::new();
        let options =
            "compare -b tpcb-like --levels rc --clients 4 --time 600 --warmup 0 --rounds 1 --json out.json";
        let running = start(&scene, &database, 2, options);
        working(&database, 4);
        running[interrupted].signal(Signal::INT);
        let mut finished = running.into_iter().map(Running::finish);
        finished.next().expect("rank 0").expect(2).prints(&["INCOMPLETE: interrupted"]);
        finished.next().expect("rank 1").expect(0);
        let document = document::read(&scene, "out.json");
        let round = rounds(&document).next().expect("a part of a round");
        assert!(commits(round).iter().all(|commits| *commits > 0), "{round:#}");
        // The server ends them a moment after they were closed.
        wait_for("the sessions' end", || (sessions(&database) == 0).then_some(()));
        assert_eq!(database.inventory(), "");
    }
}

#[test]
fn searches_parameters_and_faults_are_shared_too() {
    let Some(database) = Database::new("searches_parameters_and_faults_are_shared_too") else { return };
    let scene = Scene::new();
    // Sessions are lost on all machines; the clients go on with others.
    let [_, host, _, port, _, user] = database.server_options();
    let query = "select count(pg_terminate_backend(pid)) from pg_stat_activity where query ~ \
        '^(BEGIN|UPDATE|INSERT|SELECT abalance|END)' and pid <> pg_backend_pid() and datname = current_database()";
    let psql = format!("psql -h {host} -p {port} -U {user} -d {} -qAtc \"{query}\"", database.name);
    let (_folder, program) = program_of_root(&format!("#!/bin/sh\n{psql}\n"));
    let measure = |options: &str| {
        let options = format!("{options} --clients 4 --warmup 0 --rounds 1 --json out.json");
        run(&scene, &database, 2, &options).expect(0);
        let document = document::read(&scene, "out.json");
        assert_eq!(document["complete"], true);
        for round in rounds(&document) {
            commits(round);
        }
        document
    };
    let swept = measure("compare -b tpcb-like --levels rc --sweep --latency-limit 1000 --time 0.5");
    assert!(swept["sweeps"][0]["tried"].as_array().is_some_and(|tried| !tried.is_empty()));
    measure("compare -b simple-update --levels rc,ser --vary scale=1,2 -C --time 0.5");
    // On a busy machine the clients may have finished when psql has started.
    let met = [2, 8, 32].into_iter().any(|time| {
        let document = measure(&format!(
            "compare -b simple-update --levels rc --fault command@0.5 --fault-command {program} --time {time}"
        ));
        let round = rounds(&document).next().expect("a round");
        let (faults, settled) = (&round["faults"], &round["faults"]["settlement"]);
        let nothing = Value::from(0);
        assert_eq!((&settled["lost"], &settled["strangers"]), (&nothing, &nothing), "{settled:#}");
        assert_eq!(settled["acknowledged"], round["attempts"]["committed"]);
        count(faults, "/lost_sessions") >= 2
    });
    assert!(met, "no sessions were lost");
}

/// The number of others' sessions.
fn sessions(database: &Database) -> u64 {
    let query = "select count(*)::text from pg_stat_activity where datname = current_database() and pid <> \
        pg_backend_pid() and backend_type = 'client backend'";
    database.value(query).parse().expect("a number")
}

/// Waits until so many clients are at work.
fn working(database: &Database, clients: u64) {
    wait_for("clients at work", || {
        let query = "select count(distinct pid)::text from pg_stat_activity where datname = current_database() and \
            query like 'UPDATE%'";
        (database.value(query).parse::<u64>().expect("a number") + 1 >= clients).then_some(())
    });
}

/// A moment of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// All have found each other.
    Met,
    /// Tables are made.
    Tables,
    /// The clients of the first cell are at work.
    Working,
    /// The first cell is measured.
    First,
    /// All cells but the last are measured.
    Last,
}

impl Moment {
    const ALL: [Moment; 5] = [Moment::Met, Moment::Tables, Moment::Working, Moment::First, Moment::Last];

    /// The comparison of the moments.
    const OPTIONS: &str = "compare -b tpcb-like --levels rc,ser --clients 6 --time 2 --slice 0 --warmup 0 --rounds 2 \
        --json out.json";

    fn wait(self, machines: &[Running], database: &Database) {
        match self {
            Moment::Met => machines.iter().skip(1).for_each(|one| one.wait_for_stderr("works for")),
            Moment::Tables => {
                wait_for("tables", || database.inventory().contains("pgbench_tellers").then_some(()));
            }
            Moment::Working => working(database, 6),
            Moment::First => machines[0].wait_for_stderr("[1/4]"),
            Moment::Last => machines[0].wait_for_stderr("[3/4]"),
        }
    }

    /// The complete rounds by then.
    fn least_rounds(self) -> usize {
        match self {
            Moment::Met | Moment::Tables | Moment::Working => 0,
            Moment::First => 1,
            Moment::Last => 3,
        }
    }
}

/// Asserts that machines have ended as they should if one of them is gone.
fn assert_ended(moment: Moment, gone: usize, all: Vec<(usize, Running)>, scene: &Scene, database: &Database) {
    let told = format!("{moment:?}, rank {gone}");
    for (rank, running) in all {
        let finished = running.finish_as(&format!("rank {rank}: {told}"));
        assert!(finished.stderr.contains("is gone: "), "{told}: rank {rank}: {}", finished.stderr);
        let named = finished.stderr.contains(&format!("rank {gone} (")) || rank > 0 || gone == 0;
        assert!(named, "{told}: rank {rank}: {}", finished.stderr);
        finished.expect(2);
    }
    wait_for("all sessions to end", || (sessions(database) == 0).then_some(()));
    if gone > 0 {
        assert_eq!(database.inventory(), "", "{told}");
        if moment.least_rounds() > 0 {
            let document = document::read(scene, "out.json");
            assert_eq!(document["complete"], false, "{told}");
            let complete = rounds(&document).filter(|round| round["complete"] == true);
            let commits: Vec<Vec<u64>> = complete.map(commits).collect();
            assert!(commits.len() >= moment.least_rounds() && commits.len() < 4, "{told}: {commits:?}");
            assert!(commits.iter().all(|commits| commits.len() == MACHINES), "{told}: {commits:?}");
        }
    }
}

#[test]
fn a_killed_machine_ends_all_and_what_is_complete_is_kept() {
    let Some(database) = Database::new("a_killed_machine_ends_all_and_what_is_complete_is_kept") else {
        return;
    };
    for (moment, killed) in Moment::ALL.into_iter().zip([1, 2, 0, 1, 2]) {
        let scene = Scene::new();
        let machines = start(&scene, &database, MACHINES, Moment::OPTIONS);
        moment.wait(&machines, &database);
        machines[killed].signal(Signal::KILL);
        let mut others: Vec<(usize, Running)> = machines.into_iter().enumerate().collect();
        others.remove(killed);
        assert_ended(moment, killed, others, &scene, &database);
    }
}

/// Starts the same command on the machines of a network.
fn start_in(network: &Network, scene: &Scene, database: &Database, options: &str) -> Vec<Running> {
    let addresses = network.addresses().join(",");
    let one = |rank| {
        let own = database.isobench(scene, &words(options));
        let outer = network.command(rank, own.get_program().as_ref());
        machine(run_by(outer, &own, scene), rank, &addresses)
    };
    (0..MACHINES).map(one).collect()
}

#[test]
fn machines_in_a_network_measure_as_one() {
    let name = "machines_in_a_network_measure_as_one";
    let (Some(database), Some(network)) = (Database::new(name), Network::new(name)) else { return };
    let scene = Scene::new();
    for (options, verdict) in [
        // The default but for its length, in turns.
        ("compare --clients 6 --time 1 --slice 0.2 --warmup 0.2 --rounds 1", true),
        ("audit --clients 6 --time 1", true),
        ("compare -b tpcb-like --levels rc,ser --clients 6 --rate 200 --time 1 --warmup 0 --rounds 1", false),
    ] {
        let options = format!("{options} --json out.json");
        for finished in start_in(&network, &scene, &database, &options).into_iter().map(Running::finish) {
            finished.expect(0);
        }
        let document = document::read(&scene, "out.json");
        for round in rounds(&document) {
            assert!(commits(round).iter().all(|commits| *commits > 0), "{round:#}");
            assert_server_agrees(round);
            if verdict {
                assert_eq!(round["verdict"]["kept"], true, "{:#}", round["verdict"]);
                let warmup = round["warmup"]["committed"].as_u64().unwrap_or(0);
                let committed = count(round, "/transactions/committed") + warmup;
                assert_eq!(count(round, "/verdict/examined/committed"), committed);
            }
        }
        assert_eq!(database.inventory(), "");
    }
}

#[test]
fn a_machine_that_is_cut_off_ends_all_and_what_is_complete_is_kept() {
    let name = "a_machine_that_is_cut_off_ends_all_and_what_is_complete_is_kept";
    let cut = |moment: Moment| {
        let (Some(database), Some(network)) = (Database::new(name), Network::new(name)) else { return };
        let scene = Scene::new();
        let machines = start_in(&network, &scene, &database, Moment::OPTIONS);
        moment.wait(&machines, &database);
        network.cut(2).expect("the way is cut");
        assert_ended(moment, 2, machines.into_iter().enumerate().collect(), &scene, &database);
    };
    std::thread::scope(|scope| {
        for moment in Moment::ALL {
            scope.spawn(move || cut(moment));
        }
    });
}
