//! The sources of connection options and their precedence. Expected results are those of libpq 15.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use isobench_pgwire::{
    ChannelBinding, ConfigError, ConnectOptions, Given, Host, Secret, SslCertMode, SslMode, SslNegotiation,
    TargetSessionAttrs, TlsOptions, TlsRoots, TlsVersion,
};

/// Resolves in a separate environment, whose home has no files unless specified.
fn resolve(given: &Given, variables: &[(&str, &str)]) -> Result<ConnectOptions, ConfigError> {
    let variables: HashMap<&str, &str> =
        [("HOME", "/nonexistent")].iter().chain(variables).copied().collect();
    ConnectOptions::resolve(given, &|name| variables.get(name).map(ToString::to_string))
}

fn given(options: &[(&str, &str)]) -> Given {
    let mut given = Given::default();
    for (name, value) in options {
        let field = match *name {
            "host" => &mut given.host,
            "port" => &mut given.port,
            "user" => &mut given.user,
            "dbname" => &mut given.dbname,
            _ => &mut given.password,
        };
        *field = Some((*value).to_owned());
    }
    given
}

/// Options, environment, and the target (`describe`) or the error's text.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], &'a str);

const CASES: &[Case<'_>] = &[
    // Single options, and a connection string, which takes precedence.
    (&[("host", "/tmp"), ("port", "7"), ("user", "u")], &[], "/tmp:7/u as u"),
    (&[("host", "/tmp"), ("user", "u"), ("dbname", "d")], &[("PGDATABASE", "e")], "/tmp:5432/d as u"),
    (&[("host", "/tmp"), ("port", "7"), ("user", "u"), ("dbname", "port=8 dbname=x")], &[], "/tmp:8/x as u"),
    (&[("host", "/tmp"), ("user", "u"), ("dbname", "postgresql://h:8/x")], &[], "h:8/x as u"),
    (&[("user", "uu"), ("dbname", "host=/x")], &[], "/x:5432/uu as uu"),
    (&[("user", "uu"), ("dbname", "host=/x dbname=")], &[], "/x:5432/uu as uu"),
    // The environment; empty options are ignored, empty variables aren't.
    (&[], &[("PGHOST", "h"), ("PGPORT", "9"), ("PGUSER", "u"), ("PGDATABASE", "d")], "h:9/d as u"),
    (&[("host", ""), ("user", "")], &[("PGHOST", "h"), ("PGUSER", "u")], "h:5432/u as u"),
    (&[("host", "o"), ("user", "v")], &[("PGHOST", "h"), ("PGUSER", "u"), ("PGPORT", "")], "o:5432/v as v"),
    (&[("dbname", "user='' port='' host=x")], &[("PGPORT", "4"), ("PGDATABASE", "d")], "x:5432/d as SELF"),
    // As in pgbench, the variable may be a connection string.
    (&[("host", "o"), ("user", "v")], &[("PGDATABASE", "host=h port=9")], "h:9/v as v"),
    // Lists.
    (&[("host", "a,b"), ("user", "u")], &[], "a:5432,b:5432/u as u"),
    (&[("host", "a,b"), ("port", "1"), ("user", "u")], &[], "a:1,b:1/u as u"),
    (&[("host", "a,/tmp"), ("port", "1,"), ("user", "u")], &[], "a:1,/tmp:5432/u as u"),
    (&[("host", "[::1]"), ("user", "u")], &[("PGHOSTADDR", "::1")], "[[::1]]:5432/u as u"),
    (&[("user", "u")], &[("PGHOSTADDR", "127.0.0.1")], "127.0.0.1:5432/u as u"),
    (&[("host", "a,b"), ("port", "1,2,3")], &[], "could not match 3 port numbers to 2 hosts"),
    (
        &[("host", "a")],
        &[("PGHOSTADDR", "1.1.1.1,2.2.2.2")],
        "could not match 1 host names to 2 hostaddr values",
    ),
    // Ports.
    (&[("host", "h"), ("port", " 12 "), ("user", "u")], &[], "h:12/u as u"),
    (&[("host", "h"), ("port", "+5"), ("user", "u")], &[], "h:5/u as u"),
    (&[("port", "abc")], &[], "invalid integer value \"abc\" for connection option \"port\""),
    (&[("port", "12x")], &[], "invalid integer value \"12x\" for connection option \"port\""),
    (&[("port", "99999999999")], &[], "invalid integer value \"99999999999\" for connection option \"port\""),
    (&[("port", "70000")], &[], "invalid port number: \"70000\""),
    (&[("port", "0")], &[], "invalid port number: \"0\""),
    (&[("port", "-1")], &[], "invalid port number: \"-1\""),
    // Values.
    (&[("dbname", "foo=x")], &[], "invalid connection option \"foo\""),
    (&[], &[("PGSSLMODE", "foo")], "invalid sslmode value: \"foo\""),
    (&[("dbname", "target_session_attrs=foo")], &[], "invalid target_session_attrs value: \"foo\""),
    (&[("dbname", "channel_binding=foo")], &[], "invalid channel_binding value: \"foo\""),
    (&[("dbname", "gssencmode=x")], &[], "invalid gssencmode value: \"x\""),
    (
        &[],
        &[("PGCONNECT_TIMEOUT", "x")],
        "invalid integer value \"x\" for connection option \"connect_timeout\"",
    ),
    (&[("dbname", "keepalives=x")], &[], "invalid integer value \"x\" for connection option \"keepalives\""),
    (
        &[("dbname", "gssencmode=require")],
        &[],
        "isobench does not support \"require\" for connection option \"gssencmode\"",
    ),
];

#[test]
fn sources_and_their_order() {
    let own = resolve(&Given::default(), &[]).expect("defaults are always there").user;
    for (options, variables, expected) in CASES {
        let result = resolve(&given(options), variables);
        let text = result.map_or_else(|error| error.to_string(), |options| options.describe());
        assert_eq!(text, expected.replace("SELF", &own), "{options:?} {variables:?}");
    }
}

#[test]
fn other_options() {
    let variables = [
        ("PGAPPNAME", "x"),
        ("PGOPTIONS", "-c a=b"),
        ("PGCONNECT_TIMEOUT", "7"),
        ("PGTZ", "UTC"),
        ("PGDATESTYLE", "default"),
        ("PGREQUIRESSL", "1"),
        ("PGTARGETSESSIONATTRS", "read-write"),
        ("PGCLIENTENCODING", "auto"),
        ("PGPASSWORD", "p"),
    ];
    let options = resolve(&Given::default(), &variables).expect("valid");
    assert_eq!(options.application_name.as_deref(), Some("x"));
    assert_eq!(options.options.as_deref(), Some("-c a=b"));
    assert_eq!(options.connect_timeout, Some(Duration::from_secs(7)));
    assert_eq!(options.extra, [("timezone".to_owned(), "UTC".to_owned())]);
    assert_eq!(options.ssl_mode, SslMode::Require);
    assert_eq!(options.target_session_attrs, TargetSessionAttrs::ReadWrite);
    assert_eq!(options.client_encoding.as_deref(), Some("UTF8"));
    assert_eq!(options.password, Some(Secret::new("p")));

    let string = "postgresql:///?connect_timeout=0&keepalives=0&keepalives_idle=3&tcp_user_timeout=1500\
                  &sslrootcert=system";
    let options = resolve(&given(&[("dbname", string)]), &[]).expect("valid");
    assert_eq!(options.connect_timeout, None);
    assert!(!options.keepalives.enabled);
    assert_eq!(options.keepalives.idle, Some(Duration::from_secs(3)));
    assert_eq!(options.tcp_user_timeout, Some(Duration::from_millis(1500)));
    assert_eq!(options.ssl_mode, SslMode::VerifyFull);
}

/// Encryption options. The texts of errors are libpq's, of version 17 if 15 doesn't have the
/// option.
#[test]
fn encryption() {
    let with = |string: &str| resolve(&given(&[("dbname", string)]), &[("HOME", "/home/me")]);
    let tls = with("user=u").expect("valid").tls;
    let own = |name: &str| Some(PathBuf::from("/home/me/.postgresql").join(name));
    assert_eq!(tls.roots, own("root.crt").map(TlsRoots::File));
    assert_eq!((tls.revoked, tls.revoked_folder), (own("root.crl"), None));
    assert_eq!((tls.certificate, tls.key), (own("postgresql.crt"), own("postgresql.key")));
    assert_eq!((tls.min_version, tls.max_version, tls.sni), (TlsVersion::V12, TlsVersion::V13, true));

    let string = "sslmode=require sslrootcert=a sslcrldir=b sslcert=c sslkey=d sslcertmode=require sslsni=0 \
                  ssl_min_protocol_version=TLSv1.1 ssl_max_protocol_version=tlsv1.2 sslnegotiation=direct \
                  channel_binding=require gssencmode=prefer";
    let expected = TlsOptions {
        negotiation: SslNegotiation::Direct,
        roots: Some(TlsRoots::File("a".into())),
        revoked: None,
        revoked_folder: Some("b".into()),
        certificate: Some("c".into()),
        key: Some("d".into()),
        certificate_mode: SslCertMode::Require,
        sni: false,
        min_version: TlsVersion::V12,
        max_version: TlsVersion::V12,
        channel_binding: ChannelBinding::Require,
    };
    assert_eq!(with(string).expect("valid").tls, expected);

    let refused = [
        ("sslcertmode=x", "invalid sslcertmode value: \"x\""),
        ("sslnegotiation=x", "invalid sslnegotiation value: \"x\""),
        ("ssl_min_protocol_version=3", "invalid ssl_min_protocol_version value: \"3\""),
        ("ssl_max_protocol_version=TLSv1.1", "invalid SSL protocol version range"),
        (
            "ssl_min_protocol_version=TLSv1 ssl_max_protocol_version=TLSv1.1",
            "isobench does not support \"TLSv1.1\" for connection option \"ssl_max_protocol_version\"",
        ),
        (
            "sslnegotiation=direct",
            "weak sslmode \"prefer\" may not be used with sslnegotiation=direct (use \"require\", \"verify-ca\", or \
             \"verify-full\")",
        ),
        (
            "sslrootcert=system sslmode=verify-ca",
            "weak sslmode \"verify-ca\" may not be used with sslrootcert=system (use \"verify-full\")",
        ),
        ("sslkeylogfile=x", "isobench does not support \"x\" for connection option \"sslkeylogfile\""),
    ];
    for (string, expected) in refused {
        assert_eq!(with(string).map_err(|error| error.to_string()), Err(expected.to_owned()), "{string}");
    }
}

#[test]
fn what_names_a_server() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], bool);
    let cases: &[Case<'_>] = &[
        (&[], &[], false),
        (&[], &[("PGUSER", "u"), ("PGDATABASE", "d"), ("PGPASSWORD", "p")], false),
        (&[("user", "u")], &[], true),
        (&[("dbname", "d")], &[], true),
        (&[("dbname", "dbname=d user=u")], &[], true),
        (&[("host", "")], &[("PGHOST", "")], false),
        (&[("host", "h")], &[], true),
        (&[("port", "1")], &[], true),
        (&[("dbname", "port=1")], &[], true),
        (&[("dbname", "service=s")], &[], true),
        (&[("dbname", "postgresql:///d")], &[], true),
        (&[("dbname", "host = 'unterminated")], &[], true),
        (&[], &[("PGHOST", "h")], true),
        (&[], &[("PGHOSTADDR", "1.1.1.1")], true),
        (&[], &[("PGPORT", "1")], true),
        (&[], &[("PGSERVICE", "s")], true),
        (&[], &[("PGDATABASE", "host=h")], true),
    ];
    for (options, variables, expected) in cases {
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        let env = |name: &str| variables.get(name).map(ToString::to_string);
        assert_eq!(
            ConnectOptions::names_server(&given(options), &env),
            *expected,
            "{options:?} {variables:?}"
        );
    }
}

const SERVICES: &str = "# services\n\n  [a]\nhost=/tmp/a\n port=77 \ndbname = \
                        x\n[b]\nport=1\nhost=/b\nhost=/c\nuser=me\n\
                        [c]\nfoo=bar\n[d]\nservice=a\n[e]\nnoequals\n[ g \
                        ]\nport=3\n[h]\nldap://x\n[j]x\nport=5\nuser=j\n\
                        [k\nport=6\n[m]\nhost=h\n#x\nuser=a#b\n";

#[test]
fn services() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("services");
    std::fs::write(&path, SERVICES)?;
    let file = path.to_string_lossy().into_owned();
    let system = folder.path().join("system");
    std::fs::create_dir(&system)?;
    std::fs::write(system.join("pg_service.conf"), "[everyone]\nhost=/sys\nuser=u\n")?;
    let system = system.to_string_lossy().into_owned();
    let cases = [
        ("a", format!("syntax error in service file \"{file}\", line 6")),
        ("b", "/b:1/me as me".to_owned()),
        ("c", format!("syntax error in service file \"{file}\", line 13")),
        ("d", format!("nested service specifications not supported in service file \"{file}\", line 15")),
        ("e", format!("syntax error in service file \"{file}\", line 17")),
        ("g", "definition of service \"g\" not found".to_owned()),
        ("h", format!("LDAP is not supported by isobench: service file \"{file}\", line 21")),
        ("k", "definition of service \"k\" not found".to_owned()),
        ("m", "h:5432/a#b as a#b".to_owned()),
        ("", "definition of service \"\" not found".to_owned()),
        ("everyone", "/sys:5432/u as u".to_owned()),
    ];
    for (service, expected) in cases {
        let variables = [("PGSERVICE", service), ("PGSERVICEFILE", &file), ("PGSYSCONFDIR", &system)];
        let result = resolve(&Given::default(), &variables);
        let text = result.map_or_else(|error| error.to_string(), |options| options.describe());
        assert_eq!(text, expected, "service {service:?}");
    }
    // The service takes precedence over the environment, but not over the options.
    let variables = [("PGSERVICEFILE", file.as_str()), ("PGPORT", "9")];
    let options = resolve(&given(&[("dbname", "service=b"), ("user", "you")]), &variables).expect("valid");
    assert_eq!(options.describe(), "/b:1/you as you");
    // A file specified by the user must exist; the default one need not.
    let missing = resolve(&Given::default(), &[("PGSERVICE", "b"), ("PGSERVICEFILE", "/nonexistent/x")]);
    assert_eq!(
        missing.map_err(|error| error.to_string()),
        Err("service file \"/nonexistent/x\" not found".to_owned())
    );
    std::fs::rename(&path, folder.path().join(".pg_service.conf"))?;
    let home = folder.path().to_string_lossy().into_owned();
    let options = resolve(&Given::default(), &[("PGSERVICE", "b"), ("HOME", &home)]).expect("valid");
    assert_eq!(options.hosts, [Host::unix("/b", 1)]);
    Ok(())
}

#[test]
fn passwords_of_several_hosts() -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(".pgpass");
    std::fs::write(&path, "a:*:*:*:one\nb:2:*:u:two\n")?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    let home = folder.path().to_string_lossy().into_owned();
    let given = given(&[("dbname", "postgresql://u@a:1,b:2,c:3/d")]);
    let options = resolve(&given, &[("HOME", &home)]).expect("valid");
    let passwords: Vec<_> = options.hosts.iter().map(|host| host.password.clone()).collect();
    assert_eq!(passwords, [Some(Secret::new("one")), Some(Secret::new("two")), None]);
    // A password from another source takes precedence, and the file isn't read.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
    let options = resolve(&given, &[("HOME", &home), ("PGPASSWORD", "p")]).expect("valid");
    assert_eq!((options.hosts[0].password.clone(), options.warnings.len()), (None, 0));
    let options = resolve(&given, &[("HOME", &home)]).expect("valid");
    assert_eq!((options.hosts[0].password.clone(), options.warnings.len()), (None, 1));
    Ok(())
}
