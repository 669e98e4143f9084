//! The way from the application to isobench: a port, a certificate for applications that demand
//! encryption, and the variables by which they find both.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use isobench_comparison::{Failure, Outcome};
use isobench_pgwire::{ConnectOptions, TlsAcceptor};
use isobench_race::Environment;
use tempfile::NamedTempFile;

use super::super::record::{Address, FOREIGN, variables};

/// Variables that name the file of a certificate that clients trust: of libpq and drivers that read its
/// variables, and of Node, where it is added to the usual ones.
const TRUSTED: [&str; 2] = ["PGSSLROOTCERT", "NODE_EXTRA_CA_CERTS"];

/// Where the application connects, and how.
pub(super) struct Way {
    pub(super) listener: TcpListener,
    pub(super) acceptor: TlsAcceptor,
    pub(super) environment: Environment,
    /// The certificate's file, which is removed at the end.
    pub(super) certificate: NamedTempFile,
}

impl Way {
    /// Listens, and makes a certificate. `place` is a port, or a loopback address and a port; a free port
    /// by default. `encrypted` if the way from here to the server is.
    ///
    /// # Errors
    /// The place isn't one of this machine's own, or is taken; no file can be written.
    pub(super) fn open(place: Option<&str>, server: &ConnectOptions, encrypted: bool) -> Outcome<Self> {
        let address = place.map_or(Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))), address)?;
        let listener = TcpListener::bind(address).map_err(|error| {
            Failure::setup(format!("could not listen for connections at {address}: {error}"))
        })?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::setup(format!("could not listen for connections: {error}")))?;
        let acceptor = TlsAcceptor::for_loopback().map_err(Failure::setup)?;
        let unwritten =
            |error| Failure::setup(format!("no file for the certificate could be written: {error}"));
        let mut certificate =
            tempfile::Builder::new().prefix("isobench-").suffix(".crt").tempfile().map_err(unwritten)?;
        certificate.write_all(acceptor.certificate().as_bytes()).map_err(unwritten)?;
        let file = certificate.path().display().to_string();
        let own = variables(&Address::Tcp(address), server);
        let mut set: Vec<(String, String)> =
            own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        set.extend(TRUSTED.map(|name| (name.to_owned(), file.clone())));
        // The encryption that the application sees ends here, so an encrypted server can't confirm what is bound to
        // it. Else the variable isn't needed, and there are drivers that refuse it.
        if encrypted {
            set.push(("PGCHANNELBINDING".to_owned(), "disable".to_owned()));
        }
        let is_set = |name: &&str| set.iter().any(|(own, _)| own == name);
        let unset = FOREIGN.iter().filter(|name| !is_set(name)).map(|name| (*name).to_owned()).collect();
        Ok(Self { listener, acceptor, environment: Environment { set, unset }, certificate })
    }
}

/// The address of `--listen`.
fn address(place: &str) -> Outcome<SocketAddr> {
    let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
    let by_name = place.strip_prefix("localhost:").unwrap_or(place);
    let found = match (by_name.parse::<u16>(), place.parse::<SocketAddr>()) {
        (Ok(port), _) => SocketAddr::new(loopback, port),
        (_, Ok(address)) => address,
        _ => {
            return Err(Failure::setup(format!(
                "--listen: \"{place}\" is no port, such as 6432, and no address with a port, such as 127.0.0.1:6432"
            )));
        }
    };
    if !found.ip().is_loopback() {
        return Err(Failure::setup(format!(
            "--listen {place}: only programs of this machine may connect; use a loopback address, such as \
             127.0.0.1:{}",
            found.port()
        )));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ports_of_this_machine() {
        let shown =
            |place| address(place).map(|address| address.to_string()).map_err(|error| error.to_string());
        assert_eq!(shown("6432").as_deref(), Ok("127.0.0.1:6432"));
        assert_eq!(shown("localhost:6432").as_deref(), Ok("127.0.0.1:6432"));
        assert_eq!(shown("[::1]:0").as_deref(), Ok("[::1]:0"));
        for (wrong, why) in
            [("0.0.0.0:6432", "127.0.0.1:6432"), ("x", "--listen: \"x\""), ("70000", "no port")]
        {
            assert!(shown(wrong).is_err_and(|error| error.contains(why)), "{wrong}");
        }
    }

    #[test]
    fn applications_find_the_certificate_and_no_other_way() {
        let host = isobench_pgwire::Host::unix("/run/postgresql", 5432);
        let server = ConnectOptions::new(host, "ada", "shop");
        let way = Way::open(None, &server, true).expect("a way");
        let value = |name: &str| {
            let set = way.environment.set.iter().find(|(own, _)| own == name);
            set.map(|(_, value)| value.clone()).expect(name)
        };
        let file = std::fs::read_to_string(value("PGSSLROOTCERT")).expect("the certificate");
        assert_eq!(file, way.acceptor.certificate());
        assert_eq!(value("PGHOST"), "127.0.0.1");
        assert_eq!(value("PGCHANNELBINDING"), "disable");
        assert!(way.environment.unset.iter().all(|name| name != "PGCHANNELBINDING"));
        assert!(way.environment.unset.iter().any(|name| name == "PGSERVICE"));
        let plain = Way::open(None, &server, false).expect("a way").environment;
        assert!(plain.set.iter().all(|(name, _)| name != "PGCHANNELBINDING"), "not every driver knows it");
        assert!(plain.unset.iter().any(|name| name == "PGCHANNELBINDING"));
    }
}
