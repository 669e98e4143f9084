//! The server's end of an encrypted connection: a relay on this machine shows a certificate of its own
//! to clients that demand encryption.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::TlsStream;
use crate::socket::Socket;

/// The names of this machine for its own clients.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The protocol that clients name which encrypt at once. Source: PostgreSQL, `PG_ALPN_PROTOCOL`.
const PROTOCOL: &[u8] = b"postgresql";

/// Encrypts connections that clients have opened.
#[derive(Clone, Debug)]
pub struct TlsAcceptor {
    config: Arc<ServerConfig>,
    certificate: String,
}

impl TlsAcceptor {
    /// Makes a new certificate for the loopback addresses, and the authority that signs it and nothing
    /// else. A client that verifies has to know the authority.
    ///
    /// # Errors
    /// No key can be made; the text is for people.
    pub fn for_loopback() -> Result<Self, String> {
        let wrong = |error: &dyn std::error::Error| format!("no certificate could be made: {error}");
        let key = || KeyPair::generate().map_err(|error| wrong(&error));
        let mut authority = CertificateParams::new(Vec::new()).map_err(|error| wrong(&error))?;
        authority.distinguished_name.push(DnType::CommonName, "isobench");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let signing = key()?;
        let root = authority.self_signed(&signing).map_err(|error| wrong(&error))?;
        // Some clients trust no certificate that may sign others, and some only what one has signed.
        let names: Vec<String> = LOOPBACK.map(str::to_owned).into();
        let mut own = CertificateParams::new(names).map_err(|error| wrong(&error))?;
        own.distinguished_name.push(DnType::CommonName, "localhost");
        let key = key()?;
        let issuer = Issuer::new(authority, signing);
        let certificate = own.signed_by(&key, &issuer).map_err(|error| wrong(&error))?;
        let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], secret)
            .map_err(|error| wrong(&error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self { config: Arc::new(config), certificate: root.pem() })
    }

    /// The authority's certificate, in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Encrypts a connection whose client is about to begin the handshake.
    ///
    /// # Errors
    /// The client doesn't trust the certificate, shares no version or cipher, or doesn't answer for
    /// `patience`; the text is for people.
    pub fn accept(&self, mut socket: TcpStream, patience: Duration) -> Result<Socket, String> {
        let lost = |error: io::Error| error.to_string();
        let limit = socket.read_timeout().map_err(lost)?;
        socket.set_read_timeout(Some(patience)).map_err(lost)?;
        let mut session =
            ServerConnection::new(Arc::clone(&self.config)).map_err(|error| error.to_string())?;
        while session.is_handshaking() || session.wants_write() {
            session.complete_io(&mut socket).map_err(lost)?;
        }
        socket.set_read_timeout(limit).map_err(lost)?;
        Ok(Socket::Tls(Box::new(TlsStream::new(socket, session.into()))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    use super::*;

    fn client(
        roots: RootCertStore,
        name: &str,
        stream: TcpStream,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a client"), stream)
    }

    fn roots(acceptor: &TlsAcceptor) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(acceptor.certificate().as_bytes()).expect("PEM");
        roots.add(certificate).expect("a root");
        roots
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        (client, listener.accept().expect("accepted").0)
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_client_that_knows_the_certificate_is_served_by_name_and_by_address() {
        let acceptor = TlsAcceptor::for_loopback().expect("a certificate");
        for name in LOOPBACK {
            let (near, far) = pair();
            let own = acceptor.clone();
            let served = thread::spawn(move || {
                let mut socket = own.accept(far, PATIENCE).expect("encrypted");
                let mut bytes = [0; 4];
                socket.read_exact(&mut bytes).expect("read");
                socket.write_all(&bytes).expect("written");
            });
            let mut client = client(roots(&acceptor), name, near);
            client.write_all(b"ping").expect("written");
            let mut bytes = [0; 4];
            client.read_exact(&mut bytes).expect("read");
            assert_eq!(&bytes, b"ping", "{name}");
            served.join().expect("served");
        }
    }

    #[test]
    fn a_client_that_does_not_trust_it_goes_away() {
        let acceptor = TlsAcceptor::for_loopback().expect("a certificate");
        let (near, far) = pair();
        let other = TlsAcceptor::for_loopback().expect("another certificate");
        let asked = thread::spawn(move || {
            let mut client = client(roots(&other), "localhost", near);
            client.write_all(b"ping").and_then(|()| client.flush())
        });
        assert!(acceptor.accept(far, PATIENCE).is_err(), "the client sent an alert");
        assert!(asked.join().expect("asked").is_err());
    }

    #[test]
    fn a_client_that_says_nothing_is_not_waited_for() {
        let acceptor = TlsAcceptor::for_loopback().expect("a certificate");
        let (_near, far) = pair();
        assert!(acceptor.accept(far, Duration::from_millis(50)).is_err());
    }
}
