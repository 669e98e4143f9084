//! How isobench waits for its connections.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How workers wait for their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EventLoop {
    /// io-uring where the system allows it and it costs less, else epoll
    #[default]
    Auto,
    /// A system call for each receive and each send, and one to wait
    Epoll,
    /// One system call for all receives and sends of a turn (Linux 6.1; not with encrypted
    /// connections). An error where the system forbids it
    IoUring,
}

impl EventLoop {
    /// The name in plans and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EventLoop::Auto => "auto",
            EventLoop::Epoll => "epoll",
            EventLoop::IoUring => "io-uring",
        }
    }
}
