//! Start-ups as golden protocol traces, one message per line; random parts are masked.
//!
//! `ISOBENCH_BLESS=1 cargo test -p isobench-pgwire` updates the traces.

use std::path::Path;

use crate::support::scram::Exchange;
use crate::support::trace::{Trace, each};
use isobench_pgwire::server::{self, FrontendMessage};
use isobench_pgwire::{
    ChannelBinding, ConnectOptions, Host, Protection, Secret, Startup, StartupError, StartupProgress,
    TransactionStatus,
};
use isobench_testkit::golden::expect;

fn check(name: &str, actual: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    expect(golden.join(format!("{name}.trace")), actual);
}

fn options() -> ConnectOptions {
    let mut options = ConnectOptions::new(Host::unix("/tmp", 5432), "alice", "shop");
    options.password = Some(Secret::new("pencil"));
    options.options = Some("-c search_path=isobench".to_owned());
    options
}

/// A start-up under test.
struct TestStartup {
    startup: Startup,
    trace: Trace,
    /// The client's last messages.
    sent: Vec<u8>,
}

impl TestStartup {
    fn begin(options: &ConnectOptions) -> Self {
        let mut sent = Vec::new();
        let startup = Startup::new(options, &mut sent);
        let mut trace = Trace::default();
        trace.frontend(&sent);
        Self { startup, trace, sent }
    }

    /// Receives messages from the server, and returns the result of the last one.
    fn serve(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<StartupProgress, StartupError> {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        self.trace.backend(&bytes);
        self.sent.clear();
        let mut result = Ok(StartupProgress::Continue);
        each(&bytes, |frame| {
            if result == Ok(StartupProgress::Continue) {
                result = self.startup.on_frame(frame, &mut self.sent);
            }
        });
        self.trace.frontend(&self.sent);
        match &result {
            Ok(StartupProgress::Continue) => {}
            Ok(StartupProgress::Ready(session)) => self.trace.line(&format!("= {session:?}")),
            Err(error) => self.trace.line(&format!("! {error}")),
        }
        result
    }

    /// The body of the client's last password or SASL message.
    fn password(&self) -> Vec<u8> {
        let mut found = Vec::new();
        each(&self.sent, |frame| {
            if let Ok(FrontendMessage::Password(body)) = server::parse(frame) {
                found = body.to_vec();
            }
        });
        found
    }
}

/// The server's messages after authentication.
fn welcome(out: &mut Vec<u8>) {
    server::authentication_ok(out);
    server::parameter_status(out, "server_version", "15.18");
    server::parameter_status(out, "client_encoding", "UTF8");
    server::backend_key_data(out, 4711, &[1, 2, 3, 4]);
    server::ready_for_query(out, TransactionStatus::Idle);
}

#[test]
fn trust() {
    let mut session = TestStartup::begin(&options());
    let Ok(StartupProgress::Ready(ready)) = session.serve(welcome) else { panic!("not ready") };
    assert_eq!((ready.pid, ready.key.as_slice()), (4711, &[1, 2, 3, 4][..]));
    assert!(!session.startup.password_asked());
    check("trust", &session.trace.text());
}

#[test]
fn cleartext() {
    let mut session = TestStartup::begin(&options());
    assert!(session.serve(server::authentication_cleartext_password).is_ok());
    assert!(matches!(session.serve(welcome), Ok(StartupProgress::Ready(_))));
    check("cleartext", &session.trace.text());
}

#[test]
fn md5() {
    let mut session = TestStartup::begin(&options());
    assert!(session.serve(|out| server::authentication_md5_password(out, *b"salt")).is_ok());
    assert!(matches!(session.serve(welcome), Ok(StartupProgress::Ready(_))));
    check("md5", &session.trace.text());
}

#[test]
fn notices_and_a_negotiated_version() {
    let mut session = TestStartup::begin(&options());
    let result = session.serve(|out| {
        server::negotiate_protocol_version(out, 0, &[]);
        server::authentication_ok(out);
        server::notice_response(out, &[(b'S', "WARNING"), (b'C', "01000"), (b'M', "mind the gap")]);
        server::ready_for_query(out, TransactionStatus::Idle);
    });
    let Ok(StartupProgress::Ready(ready)) = result else { panic!("{result:?}") };
    assert_eq!(ready.notices[0].to_string(), "WARNING:  mind the gap");
    assert!(ready.key.is_empty());
}

/// Runs SCRAM up to the server's final message, sent by `finish`.
fn scram(
    password: &str,
    finish: impl FnOnce(&mut Vec<u8>, Option<String>),
) -> (Result<StartupProgress, StartupError>, TestStartup) {
    let mut session = TestStartup::begin(&options());
    let offer = |out: &mut Vec<u8>| server::authentication_sasl(out, &["SCRAM-SHA-1", "SCRAM-SHA-256"]);
    session.serve(offer).expect("the mechanism is known");
    let body = session.password();
    let (mechanism, first) = server::sasl_initial_response(&body).expect("well-formed");
    assert_eq!(mechanism, b"SCRAM-SHA-256");
    let (exchange, nonce, server_first) = Exchange::begin(password, first.expect("a first message"));
    session.trace.mask(nonce, "<nonce>");
    let send_first = |out: &mut Vec<u8>| server::authentication_sasl_continue(out, server_first.as_bytes());
    session.serve(send_first).expect("well-formed");
    let (proof, verdict) = exchange.finish(&session.password());
    session.trace.mask(proof, "<proof>");
    if let Some(signature) = &verdict {
        session.trace.mask(signature.clone(), "v=<signature>");
    }
    let result = session.serve(|out| finish(out, verdict));
    (result, session)
}

#[test]
fn scram_sha_256() {
    let (result, session) = scram("pencil", |out, verdict| {
        server::authentication_sasl_final(out, verdict.expect("the proof is right").as_bytes());
        welcome(out);
    });
    assert!(matches!(result, Ok(StartupProgress::Ready(_))), "{result:?}");
    check("scram", &session.trace.text());
}

#[test]
fn scram_with_a_wrong_password() {
    let (result, session) = scram("other", |out, verdict| {
        assert_eq!(verdict, None, "the proof is wrong");
        let message = "password authentication failed for user \"alice\"";
        server::error_response(out, &[(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "28P01"), (b'M', message)]);
    });
    assert!(matches!(result, Err(StartupError::Server(_))), "{result:?}");
    assert!(session.startup.password_asked());
    check("scram_wrong_password", &session.trace.text());
}

/// A server that doesn't know the password can't prove that it does.
#[test]
fn scram_server_without_the_password() {
    let (result, _) = scram("other", |out, _| {
        let forged = "v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        server::authentication_sasl_final(out, forged.as_bytes());
    });
    assert!(matches!(result, Err(StartupError::Scram(_))), "{result:?}");
    // It must not omit the proof either.
    let (result, _) = scram("other", |out, _| welcome(out));
    assert!(matches!(result, Err(StartupError::Protocol(_))), "{result:?}");
}

#[test]
fn what_is_not_supported_is_said() {
    let cases = [
        (2, "Kerberos 5 authentication not supported"),
        (7, "GSSAPI authentication not supported"),
        (9, "SSPI authentication not supported"),
        (99, "authentication method 99 not supported"),
    ];
    for (code, expected) in cases {
        let error = TestStartup::begin(&options()).serve(|out| server::authentication(out, code, b""));
        assert_eq!(error.map_err(|error| error.to_string()), Err(expected.to_owned()));
    }
    let error =
        TestStartup::begin(&options()).serve(|out| server::authentication_sasl(out, &["OAUTHBEARER"]));
    assert_eq!(error, Err(StartupError::NoMechanism));
}

/// The start of SCRAM, depending on the stream, the server's offer and the options. The texts are
/// libpq's.
#[test]
fn channel_binding() {
    let plus: &[&str] = &["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"];
    let bare: &[&str] = &["SCRAM-SHA-256"];
    let bound = Protection::Tls { end_point: Some(b"hash".to_vec()) };
    let unbindable = Protection::Tls { end_point: None };
    let (disable, prefer, require) =
        (ChannelBinding::Disable, ChannelBinding::Prefer, ChannelBinding::Require);
    let cases: [(&Protection, &[&str], ChannelBinding, &str); 13] = [
        (&Protection::None, bare, disable, "SCRAM-SHA-256 n"),
        (&Protection::None, bare, prefer, "SCRAM-SHA-256 n"),
        (&Protection::None, bare, require, "channel binding required, but SSL not in use"),
        (
            &Protection::None,
            plus,
            prefer,
            "server offered SCRAM-SHA-256-PLUS authentication over a non-SSL connection",
        ),
        (&bound, plus, disable, "SCRAM-SHA-256 n"),
        (&bound, plus, prefer, "SCRAM-SHA-256-PLUS p=tls-server-end-point"),
        (&bound, plus, require, "SCRAM-SHA-256-PLUS p=tls-server-end-point"),
        // A man in the middle may have removed the better offer; the server detects that by the y.
        (&bound, bare, prefer, "SCRAM-SHA-256 y"),
        (&bound, bare, disable, "SCRAM-SHA-256 n"),
        (
            &bound,
            bare,
            require,
            "channel binding is required, but server did not offer an authentication method that supports channel \
             binding",
        ),
        (&unbindable, plus, prefer, "SCRAM-SHA-256 n"),
        (&unbindable, bare, prefer, "SCRAM-SHA-256 n"),
        (
            &unbindable,
            plus,
            require,
            "channel binding is required, but server did not offer an authentication method that supports channel \
             binding",
        ),
    ];
    for (protection, offer, wanted, expected) in cases {
        let mut options = options();
        options.tls.channel_binding = wanted;
        let mut session = TestStartup::begin(&options);
        session.startup = session.startup.over(protection.clone());
        let found = if let Err(error) = session.serve(|out| server::authentication_sasl(out, offer)) {
            error.to_string()
        } else {
            let body = session.password();
            let (mechanism, first) = server::sasl_initial_response(&body).expect("well-formed");
            let first = String::from_utf8_lossy(first.expect("a first message")).into_owned();
            let header = first.split(',').next().unwrap_or_default();
            format!("{} {header}", String::from_utf8_lossy(mechanism))
        };
        assert_eq!(found, expected, "{protection:?} {offer:?} {wanted:?}");
    }
    // No other method is accepted.
    let mut options = options();
    options.tls.channel_binding = require;
    let refused =
        |encode: fn(&mut Vec<u8>)| TestStartup::begin(&options).serve(encode).map_err(|e| e.to_string());
    let expected = "channel binding required but not supported by server's authentication request";
    assert_eq!(refused(server::authentication_cleartext_password), Err(expected.to_owned()));
    let expected = "channel binding required, but server authenticated client without channel binding";
    assert_eq!(refused(server::authentication_ok), Err(expected.to_owned()));
}

#[test]
fn a_missing_password_is_said() {
    let requests: [fn(&mut Vec<u8>); 3] = [
        server::authentication_cleartext_password,
        |out| server::authentication_md5_password(out, [0; 4]),
        |out| server::authentication_sasl(out, &["SCRAM-SHA-256"]),
    ];
    for password in [None, Some(Secret::new(""))] {
        for request in requests {
            let options = ConnectOptions { password: password.clone(), ..options() };
            let mut session = TestStartup::begin(&options);
            assert_eq!(session.serve(request), Err(StartupError::NoPassword));
            assert!(session.startup.password_asked());
        }
    }
}

#[test]
fn a_password_of_the_host_is_second_choice() {
    let mut options = options();
    options.hosts[0].password = Some(Secret::new("from the file"));
    let mut session = TestStartup::begin(&options);
    assert!(session.serve(server::authentication_cleartext_password).is_ok());
    assert_eq!(session.password(), b"pencil\0");
    options.password = None;
    let mut session = TestStartup::begin(&options);
    assert!(session.serve(server::authentication_cleartext_password).is_ok());
    assert_eq!(session.password(), b"from the file\0");
}

#[test]
fn messages_out_of_turn_are_refused() {
    let cases: [fn(&mut Vec<u8>); 5] = [
        |out| server::ready_for_query(out, TransactionStatus::Idle),
        |out| server::parameter_status(out, "a", "b"),
        |out| server::backend_key_data(out, 1, &[0; 4]),
        |out| server::authentication_sasl_continue(out, b"r=x"),
        |out| {
            server::authentication_ok(out);
            server::data_row(out, &[]);
        },
    ];
    for encode in cases {
        let result = TestStartup::begin(&options()).serve(encode);
        let refused = matches!(result, Err(StartupError::Protocol(_) | StartupError::NotAuthentication(_)));
        assert!(refused, "{result:?}");
    }
}
