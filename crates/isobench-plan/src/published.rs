//! The plans that come with isobench: published experiments, files in the folder `plans`.

/// A plan that comes with isobench.
#[derive(Debug)]
pub struct Published {
    /// Its name.
    pub name: &'static str,
    /// The file's text, TOML.
    pub text: &'static str,
}

macro_rules! published {
    ($($name:literal),+) => {
        [$(Published { name: $name, text: include_str!(concat!("../plans/", $name, ".toml")) }),+]
    };
}

/// The plans that come with isobench, in the order of lists.
pub static PUBLISHED: [Published; 10] = published![
    "e1-dbist",
    "e2-pachot",
    "e3-pato",
    "e4-digoal",
    "e5-heikki",
    "smallbank",
    "sibench",
    "durability",
    "failover",
    "standby-reads"
];

/// Returns the plan of this name.
pub fn published(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|plan| plan.name == name)
}
