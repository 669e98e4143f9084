//! The option for watching a running command from outside.

use std::net::SocketAddr;

use clap::Args;

/// The heading of these options.
const LIVE: &str = "Live metrics";

/// The option for live metrics.
#[derive(Debug, Clone, Args)]
pub struct MonitorOptions {
    /// Serve /metrics to Prometheus at this address during the run, such as 127.0.0.1:9464
    ///
    /// A numeric address and a port (port 0: any free one).
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, help_heading = LIVE, hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "it takes an address in numbers and a port, such as 127.0.0.1:9464 or [::1]:0; nothing listens on other \
         addresses than the one given"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_in_full() {
        for right in ["127.0.0.1:0", "[::1]:9464", "0.0.0.0:9464"] {
            assert_eq!(address(right).expect(right).to_string(), right);
        }
        for wrong in ["9464", ":9464", "127.0.0.1", "localhost:9464", "127.0.0.1:99999", ""] {
            assert!(address(wrong).expect_err(wrong).contains("127.0.0.1:9464"), "{wrong}");
        }
    }
}
