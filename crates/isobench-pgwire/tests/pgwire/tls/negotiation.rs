//! The request for encryption, all possible answers of a server, and the certificates that are
//! trusted.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use isobench_pgwire::{
    ChannelBinding, ConnectOptions, Socket, SslCertMode, SslMode, SslNegotiation, TlsOptions, TlsRoots,
    connect,
};

use super::authority::{Authority, Identity, Wanted, file, self_signed};
use super::server::{Play, Server, answer, beginning, config, encrypt, refuse, welcome, welcome_if_it_stays};

const LOCALHOST: Wanted<'static> = Wanted { names: &["localhost"], common: "x", expired: false };

/// Connects, and returns `tls` or `plain`, or the error without the place.
fn outcome(options: &ConnectOptions, port: u16) -> String {
    match connect(options) {
        Ok(session) => if matches!(session.socket, Socket::Tls(_)) { "tls" } else { "plain" }.to_owned(),
        Err(error) => {
            let place = format!("connection to server at \"127.0.0.1\", port {port} failed: ");
            error.to_string().replace(&place, "! ")
        }
    }
}

/// A handler that answers the request and then calls `then`.
fn replying(reply: &'static [u8], then: impl FnOnce(std::net::TcpStream) + Send + 'static) -> Play {
    Box::new(move |mut stream| {
        answer(&mut stream, reply);
        then(stream);
    })
}

fn welcoming() -> Play {
    Box::new(|mut stream| welcome(&mut stream))
}

/// A handler over TLS.
fn encrypted(identity: &Identity) -> Play {
    let config = config(identity);
    replying(b"S", move |stream| {
        let mut stream = encrypt(stream, &config);
        // A client that doesn't trust the server disconnects during or after the handshake.
        if stream.conn.complete_io(&mut stream.sock).is_ok() {
            welcome_if_it_stays(&mut stream);
        }
    })
}

const CLOSED: &str = "! server closed the connection unexpectedly\n\tThis probably means the server terminated \
                      abnormally\n\tbefore or while processing the request.";

/// The answers, compared with psql 15.
#[test]
fn answers_of_servers() {
    let identity = Authority::new("a").sign(&LOCALHOST);
    let no_tls = || replying(b"N", |mut stream| welcome(&mut stream));
    let silent = |mut stream: std::net::TcpStream| {
        let _ = stream.read(&mut [0; 4096]);
    };
    let garbage = || {
        replying(b"S", |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"hello world, this is no TLS at all");
            let _ = beginning(&mut stream);
        })
    };
    let wrong = "! SSL error: wrong version number\nThis may indicate that the server does not support any SSL \
                 protocol version between TLSv1.2 and TLSv1.3.";
    let cases: Vec<(SslMode, Vec<Play>, String)> = vec![
        (SslMode::Disable, vec![welcoming()], "plain".into()),
        (SslMode::Allow, vec![welcoming()], "plain".into()),
        (SslMode::Prefer, vec![no_tls()], "plain".into()),
        (SslMode::Prefer, vec![encrypted(&identity)], "tls".into()),
        (SslMode::Require, vec![encrypted(&identity)], "tls".into()),
        (
            SslMode::Require,
            vec![replying(b"N", silent)],
            "! server does not support SSL, but SSL was required".into(),
        ),
        (
            SslMode::Prefer,
            vec![replying(b"E\0\0\0\x05\0", silent)],
            "! server sent an error response during SSL exchange".into(),
        ),
        (
            SslMode::Prefer,
            vec![replying(b"X", silent)],
            "! received invalid response to SSL negotiation: X".into(),
        ),
        (
            SslMode::Prefer,
            vec![replying(b"Sabc", silent)],
            "! received unencrypted data after SSL response".into(),
        ),
        (SslMode::Prefer, vec![replying(b"", drop)], CLOSED.into()),
        (SslMode::Prefer, vec![replying(b"S", silent), welcoming()], "plain".into()),
        (SslMode::Require, vec![replying(b"S", silent)], "! SSL SYSCALL error: EOF detected".into()),
        (SslMode::Prefer, vec![garbage(), welcoming()], "plain".into()),
        (SslMode::Require, vec![garbage()], wrong.into()),
        // The server's rules require encryption.
        (
            SslMode::Allow,
            vec![
                Box::new(|mut stream| {
                    beginning(&mut stream);
                    refuse(&mut stream, "not so");
                }),
                encrypted(&identity),
            ],
            "tls".into(),
        ),
        (
            SslMode::Allow,
            vec![
                Box::new(|mut stream| {
                    beginning(&mut stream);
                    refuse(&mut stream, "not so");
                }),
                replying(b"N", |mut stream| {
                    beginning(&mut stream);
                    refuse(&mut stream, "nor so");
                }),
            ],
            "! FATAL:  not so\n! FATAL:  nor so".into(),
        ),
    ];
    for (index, (mode, plays, expected)) in cases.into_iter().enumerate() {
        let server = Server::start(plays);
        assert_eq!(outcome(&server.options(mode), server.port()), expected, "case {index}, {mode:?}");
        server.end();
    }
}

/// Connects to a server with this identity.
fn with_identity(identity: &Identity, mode: SslMode, host: &str, tls: &TlsOptions) -> String {
    let server = Server::start(vec![encrypted(identity)]);
    let mut options = ConnectOptions { tls: tls.clone(), ..server.options(mode) };
    options.hosts[0].address = isobench_pgwire::Address::Tcp(host.to_owned());
    let outcome = outcome(&options, server.port());
    server.end();
    outcome
}

#[test]
fn who_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, other) = (Authority::new("root"), Authority::new("other"));
    let middle = root.below("middle");
    let own = self_signed(&LOCALHOST);
    let roots = file(&folder, "root.crt", &(root.pem() + &own.pem));
    let trusting = TlsOptions { roots: Some(TlsRoots::File(roots.clone())), ..TlsOptions::default() };
    let many = Wanted { names: &["db.example", "*.pool.example", "127.0.0.1"], common: "x", expired: false };
    let common = Wanted { names: &[], common: "db.example", expired: false };
    let expired = Wanted { names: &["localhost"], common: "x", expired: true };
    let verify = "! SSL error: certificate verify failed";
    let mismatch = |name: &str, host: &str| {
        format!("! server certificate for {name} does not match host name \"{host}\"")
    };
    let full = SslMode::VerifyFull;
    let cases: Vec<(Identity, SslMode, &str, String)> = vec![
        (root.sign(&LOCALHOST), full, "localhost", "tls".into()),
        (middle.sign(&LOCALHOST), full, "localhost", "tls".into()),
        (other.sign(&LOCALHOST), full, "localhost", verify.into()),
        (other.sign(&LOCALHOST), SslMode::VerifyCa, "localhost", verify.into()),
        // As in libpq, a file of authorities is used if it exists.
        (other.sign(&LOCALHOST), SslMode::Require, "localhost", verify.into()),
        (root.sign(&expired), full, "localhost", verify.into()),
        (root.sign(&LOCALHOST), SslMode::VerifyCa, "elsewhere", "tls".into()),
        (root.sign(&LOCALHOST), full, "elsewhere", mismatch("\"localhost\"", "elsewhere")),
        (root.sign(&many), full, "db.example", "tls".into()),
        (root.sign(&many), full, "b.pool.example", "tls".into()),
        (root.sign(&many), full, "127.0.0.1", "tls".into()),
        (root.sign(&many), full, "localhost", mismatch("\"db.example\" (and 2 other names)", "localhost")),
        (root.sign(&common), full, "db.example", "tls".into()),
        (root.sign(&common), full, "x", mismatch("\"db.example\"", "x")),
        (
            root.sign(&LOCALHOST),
            full,
            "",
            "! host name must be specified for a verified SSL connection".into(),
        ),
        // A self-signed certificate, and a similar one that isn't in the file.
        (own, full, "localhost", "tls".into()),
        (self_signed(&LOCALHOST), full, "localhost", verify.into()),
    ];
    for (index, (identity, mode, host, expected)) in cases.into_iter().enumerate() {
        assert_eq!(with_identity(&identity, mode, host, &trusting), expected, "case {index}");
    }
    // Without a file any certificate is accepted, unless the mode requires more.
    let stranger = other.sign(&expired);
    let nobody =
        TlsOptions { roots: Some(TlsRoots::File(folder.path().join("nosuch"))), ..TlsOptions::default() };
    assert_eq!(with_identity(&stranger, SslMode::Require, "x", &nobody), "tls");
    assert!(with_identity(&stranger, full, "x", &nobody).contains("nosuch\" does not exist\nEither provide"));
    let unnamed = with_identity(&stranger, full, "x", &TlsOptions::default());
    assert!(unnamed.contains("could not get home directory"), "{unnamed}");
    revocation(&folder, &root, &trusting);
}

fn revocation(folder: &tempfile::TempDir, root: &Authority, trusting: &TlsOptions) {
    let identity = root.sign(&LOCALHOST);
    let revoked = |name: &str, text: &str| {
        let revoked = Some(file(folder, name, text));
        with_identity(
            &identity,
            SslMode::VerifyFull,
            "localhost",
            &TlsOptions { revoked, ..trusting.clone() },
        )
    };
    assert_eq!(revoked("none.crl", &root.revoking(&[])), "tls");
    assert_eq!(revoked("one.crl", &root.revoking(&[&identity])), "! SSL error: certificate verify failed");
    // A list by an unknown authority doesn't revoke anything.
    let stranger = Authority::new("stranger").revoking(&[]);
    assert_eq!(revoked("stranger.crl", &stranger), "! SSL error: certificate verify failed");
    assert!(revoked("bad.crl", "nonsense").contains("could not read SSL CRL file"));
}

/// If names aren't verified, a certificate for another host must still be valid in every other
/// respect.
#[test]
fn a_wrong_name_hides_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Authority::new("root");
    let expired = Wanted { names: &["localhost"], common: "x", expired: true };
    let identity = root.sign(&LOCALHOST);
    let trusting = TlsOptions {
        roots: Some(TlsRoots::File(file(&folder, "root.crt", &root.pem()))),
        ..TlsOptions::default()
    };
    let revoking = TlsOptions {
        revoked: Some(file(&folder, "root.crl", &root.revoking(&[&identity]))),
        ..trusting.clone()
    };
    let verify = "! SSL error: certificate verify failed";
    let cases = [
        (&identity, &trusting, "tls"),
        (&Authority::new("other").sign(&LOCALHOST), &trusting, verify),
        (&root.sign(&expired), &trusting, verify),
        (&identity, &revoking, verify),
    ];
    for (index, (identity, tls, expected)) in cases.into_iter().enumerate() {
        for mode in [SslMode::Require, SslMode::VerifyCa] {
            assert_eq!(with_identity(identity, mode, "elsewhere", tls), expected, "case {index}, {mode:?}");
        }
    }
}

#[test]
fn direct_negotiation() {
    let identity = Authority::new("a").sign(&LOCALHOST);
    let with_protocol = config(&identity);
    let mut without = (*with_protocol).clone();
    without.alpn_protocols.clear();
    let expected = "! direct SSL connection was established without ALPN protocol negotiation extension";
    for (config, expected) in [(with_protocol, "tls"), (Arc::new(without), expected)] {
        let server = Server::start(vec![Box::new(move |stream| {
            let mut stream = encrypt(stream, &config);
            if stream.conn.complete_io(&mut stream.sock).is_ok() {
                welcome_if_it_stays(&mut stream);
            }
        })]);
        let mut options = server.options(SslMode::Require);
        options.tls.negotiation = SslNegotiation::Direct;
        assert_eq!(outcome(&options, server.port()), expected);
        server.end();
    }
}

#[test]
fn a_certificate_that_must_be_shown() {
    let identity = Authority::new("a").sign(&LOCALHOST);
    let tls = TlsOptions { certificate_mode: SslCertMode::Require, ..TlsOptions::default() };
    let outcome = with_identity(&identity, SslMode::Require, "localhost", &tls);
    assert!(outcome.contains("sslcertmode value \"require\""), "{outcome}");
}

#[test]
fn a_binding_that_is_not_offered() {
    let identity = Authority::new("a").sign(&LOCALHOST);
    let tls = TlsOptions { channel_binding: ChannelBinding::Require, ..TlsOptions::default() };
    let expected = "! channel binding required, but server authenticated client without channel binding";
    assert_eq!(with_identity(&identity, SslMode::Require, "localhost", &tls), expected);
}
