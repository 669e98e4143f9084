//! Downloads a file into memory, within limits of time and size, through the proxy specified by the
//! environment.
//!
//! Not here: how servers are verified (`isobench_http`).

use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_http::secure_agent;
use ureq::http::Response;
use ureq::{Agent, Body, Error, Proxy, Timeout};

/// The limits of a download.
pub(crate) struct Limits {
    /// The time limit for each step to an answer (name, connection, first bytes), and for repeating
    /// attempts.
    pub(crate) answer: Duration,
    /// The time limit for the whole download.
    pub(crate) whole: Duration,
    /// The maximum size of the file, in bytes.
    pub(crate) size: u64,
    /// The pauses before further attempts, made if the last failure may be temporary.
    pub(crate) pauses: &'static [Duration],
}

/// Downloads a file.
///
/// # Errors
/// A sentence.
pub(crate) fn get(url: &str, limits: &Limits, proxy: Option<Proxy>) -> Result<Vec<u8>, String> {
    let agent = secure_agent(limits.whole, proxy).map_err(|error| error.to_string())?;
    let file = answer(&agent, url, limits)
        .and_then(|mut response| response.body_mut().with_config().limit(limits.size).read_to_vec());
    file.map_err(|error| match error {
        Error::Timeout(Timeout::Global) => no_answer(limits.whole),
        Error::Timeout(_) => no_answer(limits.answer),
        other => format!("{url}: {other}"),
    })
}

/// The proxy for HTTPS specified by the environment: `HTTPS_PROXY`, or `ALL_PROXY`, except for
/// hosts in `NO_PROXY`; also in lower case.
///
/// ureq itself would prefer `ALL_PROXY`, and use `HTTP_PROXY` for HTTPS too.
pub(crate) fn proxy(variable: impl Fn(&str) -> Option<String>) -> Option<Proxy> {
    let first =
        |resolver: [&str; 2]| resolver.into_iter().find_map(&variable).filter(|value| !value.is_empty());
    let named = [["HTTPS_PROXY", "https_proxy"], ["ALL_PROXY", "all_proxy"]];
    let named = named.into_iter().filter_map(first).find_map(|text| Proxy::new(&text).ok())?;
    let mut proxy = Proxy::builder(named.protocol()).host(named.host()).port(named.port());
    if let Some(user) = named.username() {
        proxy = proxy.username(user);
    }
    if let Some(password) = named.password() {
        proxy = proxy.password(password);
    }
    let direct = first(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    for host in direct.split(',').map(str::trim).filter(|host| !host.is_empty()) {
        proxy = proxy.no_proxy(host);
        // As in curl, a domain matches the hosts in it, and `.domain` matches the domain too.
        proxy = match host.strip_prefix('.') {
            Some(domain) => proxy.no_proxy(domain),
            None => proxy.no_proxy(&format!(".{host}")),
        };
    }
    proxy.build().ok()
}

/// Repeats the request until there is an answer, or a failure that isn't temporary.
fn answer(agent: &Agent, url: &str, limits: &Limits) -> Result<Response<Body>, Error> {
    let end = Instant::now() + limits.answer;
    let mut pauses = limits.pauses.iter();
    loop {
        let left = Some(end.saturating_duration_since(Instant::now()));
        let request = agent.get(url).config();
        let request = request.timeout_resolve(left).timeout_connect(left).timeout_recv_response(left);
        let error = match request.build().call() {
            Err(error) if may_pass(&error) => error,
            other => return other,
        };
        match pauses.next() {
            Some(pause) if Instant::now() + *pause < end => sleep(*pause),
            _ => return Err(error),
        }
    }
}

fn may_pass(error: &Error) -> bool {
    match error {
        Error::StatusCode(status) => matches!(status, 408 | 429 | 500..),
        Error::Io(_) | Error::HostNotFound | Error::ConnectionFailed => true,
        _ => false,
    }
}

fn no_answer(limit: Duration) -> String {
    format!("no answer within {} s", limit.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread::{JoinHandle, spawn};

    const LIMITS: Limits = Limits {
        answer: Duration::from_mins(1),
        whole: Duration::from_mins(1),
        size: 1000,
        pauses: &[Duration::ZERO; 3],
    };

    /// A server that gives these answers, one per connection; returns its address, and the first
    /// lines of the requests.
    fn serve(answers: &[&'static str]) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let answers = answers.to_vec();
        let serve = move || {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().expect("a connection");
                let lines = BufReader::new(&socket).lines().map_while(Result::ok);
                asked.extend(lines.take_while(|line| !line.is_empty()).next());
                socket.write_all(answer.as_bytes()).expect("write");
            }
            asked
        };
        (address, spawn(serve))
    }

    const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

    fn get_from(address: &str, limits: &Limits) -> Result<Vec<u8>, String> {
        get(&format!("http://{address}/file"), limits, None)
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        let (address, server) = serve(&[BUSY, BUSY, BUSY, FINE]);
        assert_eq!(get_from(&address, &LIMITS), Ok(b"hello".to_vec()));
        assert_eq!(server.join().expect("ends"), ["GET /file HTTP/1.1"; 4]);
    }

    #[test]
    fn attempts_have_an_end() {
        let (address, server) = serve(&[BUSY; 4]);
        let error = get_from(&address, &LIMITS).expect_err("busy");
        assert!(error.contains("503") && error.contains(&address), "{error}");
        assert_eq!(server.join().expect("ends").len(), 4);
    }

    #[test]
    fn what_is_not_there_is_asked_for_once() {
        let (address, server) = serve(&["HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"]);
        let error = get_from(&address, &LIMITS).expect_err("not there");
        assert!(error.contains("404"), "{error}");
        assert_eq!(server.join().expect("ends").len(), 1);
    }

    #[test]
    fn a_file_that_is_too_large_or_cut_off_is_refused() {
        let (address, server) = serve(&[FINE]);
        let error = get_from(&address, &Limits { size: 4, ..LIMITS }).expect_err("too large");
        assert!(error.contains(&address), "{error}");
        server.join().expect("ends");
        let (address, server) = serve(&["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"]);
        get_from(&address, &LIMITS).expect_err("cut off");
        server.join().expect("ends");
    }

    #[test]
    fn waiting_has_an_end() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = silent.local_addr().expect("an address").to_string();
        for (answer, whole) in
            [(5, 60_000), (60_000, 5)].map(|(a, b)| (Duration::from_millis(a), Duration::from_millis(b)))
        {
            let error = get_from(&address, &Limits { answer, whole, ..LIMITS }).expect_err("no answer");
            assert!(error.contains("no answer within 0 s"), "{error}");
        }
    }

    fn proxy_of(variables: &[(&str, &str)]) -> Option<Proxy> {
        proxy(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_the_proxy() {
        let host = |variables: &[(&str, &str)]| {
            proxy_of(variables).map(|proxy| format!("{}:{}", proxy.host(), proxy.port()))
        };
        let (https, all) = (("HTTPS_PROXY", "http://a:1"), ("ALL_PROXY", "http://b:2"));
        assert_eq!(host(&[https, all]).as_deref(), Some("a:1"));
        assert_eq!(host(&[("https_proxy", "a:3"), all]).as_deref(), Some("a:3"));
        assert_eq!(host(&[("HTTPS_PROXY", ""), all]).as_deref(), Some("b:2"));
        assert_eq!(host(&[("all_proxy", "http://b:4")]).as_deref(), Some("b:4"));
        assert_eq!(host(&[("HTTP_PROXY", "http://c:5"), ("NO_PROXY", "x")]), None);
        let named = proxy_of(&[("HTTPS_PROXY", "http://me:p%40ss@a:1")]).expect("a proxy");
        assert_eq!((named.username(), named.password()), (Some("me"), Some("p@ss")));
    }

    #[test]
    fn hosts_without_a_proxy_are_known() {
        let direct = |hosts, host: &str| {
            let proxy = proxy_of(&[("HTTPS_PROXY", "http://a:1"), ("no_proxy", hosts)]).expect("a proxy");
            proxy.is_no_proxy(&format!("https://{host}/").parse().expect("an address"))
        };
        for hosts in ["example.com", ".example.com", "x, Example.COM", "*", "*.example.com,example.com"] {
            assert!(direct(hosts, "example.com") && direct(hosts, "www.example.com"), "{hosts}");
        }
        for hosts in ["", "ample.com", "www.example.com", ","] {
            assert!(!direct(hosts, "example.com"), "{hosts}");
        }
    }

    #[test]
    fn the_proxy_is_asked() {
        let (address, server) = serve(&["HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"]);
        let named = proxy_of(&[("HTTPS_PROXY", &format!("http://{address}"))]);
        get("https://example.invalid/file", &LIMITS, named).expect_err("refused");
        assert_eq!(server.join().expect("ends"), ["CONNECT example.invalid:443 HTTP/1.1"]);
    }

    #[test]
    fn a_proxy_of_any_kind_is_asked_or_refused() {
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        for kind in ["http", "https", "socks", "socks4", "socks4a", "socks5", "socks5h"] {
            let named = proxy_of(&[("ALL_PROXY", &format!("{kind}://{port}"))]);
            assert!(named.is_some(), "{kind}");
            // The port is closed by now.
            get("https://127.0.0.1/file", &LIMITS, named).expect_err(kind);
        }
        assert!(proxy_of(&[("ALL_PROXY", "gopher://a:1")]).is_none());
    }
}
