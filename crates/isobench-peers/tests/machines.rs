//! Several processes: phases go on until one is killed, or the way to it is cut; the others then end by
//! themselves and name it.
//!
//! The test program is its own child: `ISOBENCH_TEST_RANK` makes it a machine.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isobench_peers::{Credentials, NOTICED, Peers, Place, Secret};
use isobench_testkit::network::Network;
use isobench_testkit::ports::free_addresses;

const RANK: &str = "ISOBENCH_TEST_RANK";
const ADDRESSES: &str = "ISOBENCH_TEST_ADDRESSES";

/// Time for whatever should happen at once, on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The child: takes part in phases until it can't any more, and says how that ended.
#[test]
fn child() {
    let Ok(rank) = std::env::var(RANK) else { return };
    let addresses = std::env::var(ADDRESSES).expect("addresses").split(',').map(str::to_owned).collect();
    let place = Place { rank: rank.parse().expect("a rank"), addresses };
    let credentials =
        Credentials { secret: Secret::new("test"), version: "1".to_owned(), task: "phases".to_owned() };
    let mut peers = match Peers::join(place, &credentials, PATIENCE) {
        Ok(peers) => peers,
        Err(error) => return println!("@not joined: {error}"),
    };
    let mut phases = 0_u64;
    loop {
        if let Err(error) = peers.barrier("a phase", PATIENCE) {
            return println!("@ended: {error}");
        }
        phases += 1;
        if phases == 100 {
            println!("@going on");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A child, killed if the test ends before it.
struct Machine {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Machine {
    /// Starts a machine by a command that runs the test program.
    fn start(mut command: Command, rank: usize, addresses: &str) -> Machine {
        command.args(["child", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(RANK, rank.to_string()).env(ADDRESSES, addresses);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        Machine { process, lines }
    }

    /// The next thing that it says.
    fn says(&mut self) -> String {
        let said = self.lines.by_ref().map_while(Result::ok);
        let mut said = said.filter_map(|line| line.split_once('@').map(|(_, text)| text.to_owned()));
        said.next().unwrap_or_else(|| "nothing".to_owned())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("the test program"))
}

/// Three machines in the midst of phases. Somebody else may take one of their ports meanwhile.
fn three_going_on() -> Vec<Machine> {
    let mut said = String::new();
    for _ in 0..3 {
        let addresses = free_addresses(3).join(",");
        let mut machines: Vec<Machine> =
            (0..3).map(|rank| Machine::start(this_program(), rank, &addresses)).collect();
        let all: Vec<String> = machines.iter_mut().map(Machine::says).collect();
        if all.iter().all(|one| one == "going on") {
            return machines;
        }
        said = all.join("; ");
    }
    panic!("{said}");
}

#[test]
fn a_machine_that_is_killed_is_noticed_and_named() {
    for killed in 0..3 {
        let mut machines = three_going_on();
        machines[killed].process.kill().expect("killed");
        for (rank, machine) in machines.iter_mut().enumerate().filter(|(rank, _)| *rank != killed) {
            let said = machine.says();
            // The first of them to end may be what the other one sees.
            let names = said.contains(&format!("rank {killed} ")) || said.contains("is gone");
            assert!(said.starts_with("ended: ") && names, "rank {rank} of {killed}: {said}");
        }
    }
}

#[test]
fn a_machine_behind_a_cut_way_is_noticed() {
    let Some(network) = Network::new("a_machine_behind_a_cut_way_is_noticed") else { return };
    let addresses = network.addresses().join(",");
    let program = std::env::current_exe().expect("the test program");
    let start = |rank| Machine::start(network.command(rank, &program), rank, &addresses);
    let mut machines: Vec<Machine> = (0..3).map(start).collect();
    for machine in &mut machines {
        assert_eq!(machine.says(), "going on");
    }
    let began = Instant::now();
    network.cut(2).expect("the way is cut");
    for (rank, machine) in machines.iter_mut().enumerate() {
        let said = machine.says();
        assert!(said.starts_with("ended: ") && said.contains("is gone"), "rank {rank}: {said}");
    }
    // A minute would be the deadline of the phase.
    assert!(began.elapsed() < PATIENCE / 2, "{:?}, though {NOTICED:?} are promised", began.elapsed());
}
