//! The names of factors that other parts of the program know.

/// The version of the server, among the factors of a cell.
pub const SERVER_VERSION: &str = "server-version";
/// The folder of the server's programs.
pub const SERVER_BIN: &str = "server-bin";
/// The way by which clients reach the server.
pub const ENDPOINT: &str = "endpoint";
/// How standbys follow.
pub const STANDBY: &str = "standby";
/// What another session does.
pub const BACKGROUND: &str = "background";
/// What happens to the server.
pub const FAULT: &str = "fault";
/// What the names of varied settings begin with.
pub const SETTING: &str = "setting:";
