//! Who connects to the recorder. Where the server takes whoever connects for the user that runs the
//! recorder, nobody else may come in through it.

use std::net::SocketAddr;
use std::path::Path;

use isobench_pgwire::{Address, ConnectOptions, Socket, SslCertMode, SslMode};
use rustix::process::geteuid;

/// True if the recorder's connections may be somebody by themselves, without a password: by a Unix socket
/// (`peer`) or a client certificate (`cert`).
pub fn lends_identity(server: &ConnectOptions) -> bool {
    let by_socket = server.hosts.iter().any(|host| matches!(host.address, Address::Unix(_)));
    by_socket || shows_certificate(server)
}

/// True if the server gets a client certificate should it ask for one. Its file has a usual place, where
/// mostly none is.
fn shows_certificate(server: &ConnectOptions) -> bool {
    let tls = &server.tls;
    let may = server.ssl_mode != SslMode::Disable && tls.certificate_mode != SslCertMode::Disable;
    may && tls.certificate.as_deref().is_some_and(Path::exists)
}

/// True if a client runs as the same user as the recorder. A Unix socket lets no other user in; of TCP the
/// system's table of connections says it. What isn't in it belongs to another machine.
pub(crate) fn is_own(client: &Socket) -> bool {
    let stream = match client {
        Socket::Tcp(stream) => stream,
        Socket::Tls(stream) => stream.socket(),
        Socket::Unix(_) => return true,
    };
    let (Ok(here), Ok(there)) = (stream.local_addr(), stream.peer_addr()) else { return false };
    let same = |one: SocketAddr, other: SocketAddr| {
        one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
    };
    // To read one takes the system milliseconds.
    let tables = [procfs::net::tcp, procfs::net::tcp6].into_iter().filter_map(|table| table().ok());
    tables.flatten().any(|entry| {
        same(entry.local_address, there)
            && same(entry.remote_address, here)
            && entry.uid == geteuid().as_raw()
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use isobench_pgwire::Host;

    use super::*;

    #[test]
    fn ones_own_connections_are_known() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (accepted, _) = listener.accept().expect("a connection");
        assert!(is_own(&Socket::Tcp(accepted)));
        drop(client);
    }

    #[test]
    fn sockets_and_certificates_lend_the_recorders_identity() {
        assert!(lends_identity(&ConnectOptions::new(Host::unix("/run/postgresql", 5432), "a", "b")));
        let mut server = ConnectOptions::new(Host::tcp("db.example", 5432), "a", "b");
        assert!(!lends_identity(&server));
        let folder = tempfile::tempdir().expect("a folder");
        let certificate = folder.path().join("postgresql.crt");
        server.tls.certificate = Some(certificate.clone());
        assert!(!lends_identity(&server), "there is no such file");
        std::fs::write(certificate, "").expect("a file");
        assert!(lends_identity(&server));
        server.tls.certificate_mode = SslCertMode::Disable;
        assert!(!lends_identity(&server));
        server.tls.certificate_mode = SslCertMode::Allow;
        server.ssl_mode = SslMode::Disable;
        assert!(!lends_identity(&server));
    }
}
