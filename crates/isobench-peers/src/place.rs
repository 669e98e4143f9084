//! Who is who: the addresses of all machines, and which of them this one is, as the options say or the
//! program that has started them all.

use std::net::ToSocketAddrs;

/// A machine among all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 0.
    pub rank: usize,
    /// The addresses of all, by rank: HOST:PORT.
    pub addresses: Vec<String>,
}

/// Nobody knows which machine this is, or which there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// An address has another form, or is there twice.
    #[error("--peers: \"{0}\" {1}; give HOST:PORT for each machine, in the order of their ranks")]
    Address(String, &'static str),
    /// There is a single machine.
    #[error("--peers: {0} machine; give the addresses of two or more, separated by commas")]
    Few(usize),
    /// No rank.
    #[error(
        "which of --peers is this machine? Say it by --rank NUM, from 0 (or start all by mpiexec or srun)"
    )]
    NoRank,
    /// A rank that there isn't.
    #[error("{by}: {rank} is no rank: --peers has {number} addresses, so ranks are 0 to {}", number - 1)]
    Rank {
        /// Who says so.
        by: String,
        /// The rank.
        rank: usize,
        /// The number of addresses.
        number: usize,
    },
    /// Another number than there are addresses.
    #[error("{by} says that there are {said} machines, but --peers has {number} addresses")]
    Number {
        /// Who says so.
        by: String,
        /// The number.
        said: usize,
        /// The number of addresses.
        number: usize,
    },
    /// A variable that isn't a number.
    #[error("{0}=\"{1}\" isn't a number")]
    NoNumber(String, String),
}

/// The variables by which launchers say rank and number: PMI (MPICH, Hydra), Open MPI's own (with `PMIx`),
/// Slurm, and a Kubernetes Job with an index for each pod. In this order, as `srun` may start others.
const LAUNCHERS: [(&str, Option<&str>); 5] = [
    ("PMI_RANK", Some("PMI_SIZE")),
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMIX_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("SLURM_PROCID", Some("SLURM_NTASKS")),
    ("JOB_COMPLETION_INDEX", None),
];

impl Place {
    /// Finds the place of this machine among these addresses. `rank` is what the options say; without it,
    /// the environment is asked.
    ///
    /// # Errors
    /// An address has another form, or it isn't known which machine this is.
    pub fn find(
        addresses: &[String],
        rank: Option<usize>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Place, PlaceError> {
        let addresses: Vec<String> = addresses.iter().map(|text| text.trim().to_owned()).collect();
        for (index, address) in addresses.iter().enumerate() {
            let has_port = address.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            if !has_port {
                return Err(PlaceError::Address(address.clone(), "has no port"));
            }
            if addresses[..index].contains(address) {
                return Err(PlaceError::Address(address.clone(), "is there twice"));
            }
        }
        let number = addresses.len();
        if number < 2 {
            return Err(PlaceError::Few(number));
        }
        let (by, rank) = match rank {
            Some(rank) => ("--rank".to_owned(), rank),
            None => launched(number, environment)?,
        };
        if rank >= number {
            return Err(PlaceError::Rank { by, rank, number });
        }
        Ok(Place { rank, addresses })
    }

    /// The number of machines.
    pub fn number(&self) -> usize {
        self.addresses.len()
    }

    /// True if no other machine can reach any of the addresses.
    pub fn is_local(&self) -> bool {
        let local = |address: &String| {
            address.to_socket_addrs().is_ok_and(|mut found| found.all(|one| one.ip().is_loopback()))
        };
        self.addresses.iter().all(local)
    }
}

/// The rank that a launcher says, and by which variable.
fn launched(
    number: usize,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(String, usize), PlaceError> {
    let read = |name: &str| {
        let text = environment(name).filter(|text| !text.is_empty());
        let wrong = |text: &String| PlaceError::NoNumber(name.to_owned(), text.clone());
        text.map(|text| text.trim().parse::<usize>().map_err(|_| wrong(&text))).transpose()
    };
    for (rank, size) in LAUNCHERS {
        let Some(found) = read(rank)? else { continue };
        let said = size.map(&read).transpose()?.flatten();
        if let Some(said) = said.filter(|said| *said != number) {
            let by = size.unwrap_or_default().to_owned();
            return Err(PlaceError::Number { by, said, number });
        }
        return Ok((rank.to_owned(), found));
    }
    Err(PlaceError::NoRank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(addresses: &str, rank: Option<usize>, variables: &[(&str, &str)]) -> Result<Place, String> {
        let addresses: Vec<String> = addresses.split(',').map(str::to_owned).collect();
        let environment = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Place::find(&addresses, rank, &environment).map_err(|error| error.to_string())
    }

    const THREE: &str = "a:7001, b:7001,[::1]:7001";

    #[test]
    fn launchers_say_who_is_who() {
        for (variables, expected) in [
            (&[("PMI_RANK", "2"), ("PMI_SIZE", "3")][..], 2),
            (&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "3"), ("PMIX_RANK", "1")], 1),
            (&[("PMIX_RANK", "1")], 1),
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "3")], 0),
            (&[("JOB_COMPLETION_INDEX", "2")], 2),
            (&[("PMI_RANK", ""), ("JOB_COMPLETION_INDEX", "1")], 1),
        ] {
            assert_eq!(find(THREE, None, variables).unwrap().rank, expected, "{variables:?}");
        }
        let place = find(THREE, Some(1), &[("PMI_RANK", "2")]).unwrap();
        assert_eq!((place.rank, place.number(), &place.addresses[1][..]), (1, 3, "b:7001"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (addresses, rank, variables, part) in [
            ("a:7001", Some(0), &[][..], "two or more"),
            ("a:7001,b", Some(0), &[], "\"b\" has no port"),
            ("a:7001,b:0", Some(0), &[], "\"b:0\" has no port"),
            ("a:7001,a:7001", Some(0), &[], "is there twice"),
            (THREE, Some(3), &[], "--rank: 3 is no rank"),
            (THREE, None, &[], "Say it by --rank NUM"),
            (THREE, None, &[("PMI_RANK", "x")], "PMI_RANK=\"x\" isn't a number"),
            (THREE, None, &[("PMI_RANK", "3")], "PMI_RANK: 3 is no rank"),
            (THREE, None, &[("PMI_RANK", "0"), ("PMI_SIZE", "4")], "PMI_SIZE says that there are 4 machines"),
        ] {
            let message = find(addresses, rank, variables).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn loopback_is_local() {
        assert!(find("127.0.0.1:1,[::1]:2", Some(0), &[]).unwrap().is_local());
        assert!(!find("127.0.0.1:1,10.0.0.1:2", Some(0), &[]).unwrap().is_local());
    }
}
