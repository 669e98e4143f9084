//! The protocol, connections and their options: the codec, servers run by closures, and the real
//! ones.

mod codec;
mod connection;
mod conninfo;
mod limits;
mod real_server;
mod resolve;
mod startup;
mod support;
mod tls;
