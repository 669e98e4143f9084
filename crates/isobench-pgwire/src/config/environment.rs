//! Environment variables.

/// Looks up an environment variable; tests provide their own environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment of this process; variables that aren't UTF-8 are treated as unset.
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
