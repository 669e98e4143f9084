//! Several machines, here processes on loopback: they find each other, or say who is missing.

use isobench_testkit::ports::free_addresses;

use crate::compare::words;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;

/// Runs machines to their end, each with its options and variables.
fn run(scene: &Scene, machines: &[(String, Vec<(&str, String)>)]) -> Vec<Finished> {
    let start = |(line, variables): &(String, Vec<(&str, String)>)| {
        let mut command = scene.isobench(&words(line));
        for (name, value) in variables {
            command.env(name, value);
        }
        Running::start(&mut command)
    };
    let running: Vec<Running> = machines.iter().map(start).collect();
    running.into_iter().map(Running::finish).collect()
}

#[test]
fn machines_find_each_other() {
    let scene = Scene::new();
    let addresses = free_addresses(3);
    scene.write("machines.txt", &format!("# three\n{}\n", addresses.join("  # a machine\n")));
    let rank = |rank: usize| match rank {
        // However they are told who they are.
        0 => ("--rank 0".to_owned(), Vec::new()),
        1 => (String::new(), vec![("SLURM_PROCID", "1".to_owned()), ("SLURM_NTASKS", "3".to_owned())]),
        _ => (String::new(), vec![("JOB_COMPLETION_INDEX", "2".to_owned())]),
    };
    let machine = |number| {
        let (option, variables) = rank(number);
        (format!("peers --peers-file machines.txt {option}").trim().to_owned(), variables)
    };
    let mut finished = run(&scene, &[machine(0), machine(1), machine(2)]).into_iter();
    let zero = finished.next().expect("rank 0").expect(0);
    zero.prints(&["rank  address", "clock ±", "All 3 machines run isobench", &addresses[2]]);
    for (rank, other) in finished.enumerate() {
        let rank = format!("rank {} of 3: fine; clock known to ± ", rank + 1);
        other.expect(0).prints(&[&rank]);
    }
}

#[test]
fn who_does_not_belong_to_the_others_is_refused() {
    let scene = Scene::new();
    let list = free_addresses(2).join(",");
    let with = |rank: usize, secret: &str| {
        let line = format!("peers --peers {list} --rank {rank} --peers-wait 2");
        (line, vec![("ISOBENCH_PEERS_SECRET", secret.to_owned())])
    };
    let mut finished = run(&scene, &[with(0, "one"), with(1, "another")]).into_iter();
    finished.next().expect("rank 0").expect(1).says(&["rank 1 (", "didn't come", "doesn't know the secret"]);
    finished.next().expect("rank 1").expect(1).says(&["ISOBENCH_PEERS_SECRET must be the same"]);
}

#[test]
fn what_is_missing_is_said() {
    let scene = Scene::new();
    let list = free_addresses(2).join(",");
    for (line, part) in [
        (format!("peers --peers {list} --rank 1 --peers-wait 1"), "rank 0 ("),
        (format!("peers --peers {list}"), "Say it by --rank NUM"),
        (format!("peers --peers {list} --rank 2"), "--rank: 2 is no rank"),
        ("peers --peers 10.0.0.1:7001,10.0.0.2:7001 --rank 0".to_owned(), "ISOBENCH_PEERS_SECRET isn't set"),
        ("peers --peers a --rank 0".to_owned(), "\"a\" has no port"),
        ("peers --peers-file none.txt --rank 0".to_owned(), "--peers-file: could not read \"none.txt\""),
        ("peers".to_owned(), "--peers <LIST>"),
    ] {
        scene.run(&words(&line)).expect(1).says(&[part]);
    }
}
