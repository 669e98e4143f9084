//! Machines in a network of their own, for tests of several of them.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::installed::skip;

/// The number of machines.
pub const MACHINES: usize = 3;

/// Three machines, each in a network namespace of its own, on a bridge in a fourth one. Removed on
/// drop.
pub struct Network {
    prefix: String,
}

impl Network {
    /// `None` after saying why the test is skipped: there can't be one.
    pub fn new(test: &str) -> Option<Network> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let network = Network { prefix: format!("isb{}x{number}", std::process::id()) };
        let hub = network.hub();
        let made = ip(&format!("netns add {hub}"))
            .and_then(|()| ip(&format!("-n {hub} link add br0 type bridge")))
            .and_then(|()| ip(&format!("-n {hub} link set br0 up")));
        let made = made.and_then(|()| (0..MACHINES).try_for_each(|rank| network.add(rank)));
        match made {
            Ok(()) => Some(network),
            Err(why) => {
                skip(test, &format!("no network namespaces can be made here (root, iproute2): {why}"));
                None
            }
        }
    }

    fn hub(&self) -> String {
        format!("{}h", self.prefix)
    }

    fn machine(&self, rank: usize) -> String {
        format!("{}m{rank}", self.prefix)
    }

    fn add(&self, rank: usize) -> Result<(), String> {
        let (hub, machine) = (self.hub(), self.machine(rank));
        ip(&format!("netns add {machine}"))?;
        ip(&format!("-n {machine} link set lo up"))?;
        ip(&format!("-n {hub} link add p{rank} type veth peer name eth0 netns {machine}"))?;
        ip(&format!("-n {hub} link set p{rank} master br0"))?;
        ip(&format!("-n {hub} link set p{rank} up"))?;
        ip(&format!("-n {machine} addr add 10.77.0.{}/24 dev eth0", rank + 1))?;
        ip(&format!("-n {machine} link set eth0 up"))
    }

    /// The addresses of the machines for each other, HOST:PORT.
    pub fn addresses(&self) -> Vec<String> {
        (1..=MACHINES).map(|number| format!("10.77.0.{number}:7001")).collect()
    }

    /// A command that runs a program on a machine, whose arguments are to be added.
    pub fn command(&self, rank: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.machine(rank)]).arg(program);
        command
    }

    /// Cuts the way to a machine: nothing arrives any more, and nobody is told.
    ///
    /// # Errors
    /// The system refuses.
    pub fn cut(&self, rank: usize) -> Result<(), String> {
        ip(&format!("-n {} link set p{rank} down", self.hub()))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for rank in 0..MACHINES {
            let _ = ip(&format!("netns del {}", self.machine(rank)));
        }
        let _ = ip(&format!("netns del {}", self.hub()));
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
