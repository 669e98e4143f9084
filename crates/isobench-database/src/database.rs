//! The product and version of a server, and their recognition.

use isobench_pgwire::{Connection, SqlState, cut};

use crate::error::Error;
use crate::product::Product;
use crate::products::{PRODUCTS, UNKNOWN};

/// The product and version of a server.
#[derive(Debug, Clone)]
pub struct Database {
    /// The product's facts.
    pub product: &'static Product,
    /// The whole answer to `SELECT version()`; empty if the server doesn't answer that.
    pub version_text: String,
    /// The version number, for example `18.3`, `v20.1.5`, `2.25.0.0-b489`; empty if it can't be
    /// found.
    pub version: String,
    /// The schema of our own tables, as [`Database::place`] puts it before their names; `None` if
    /// the search path decides.
    pub schema: Option<String>,
}

impl Database {
    /// Parses the answer to `SELECT version()`.
    ///
    /// `server_version` isn't used: `CockroachDB` reports 9.5.0 or 13.0.0 there, `H2` 8.2.23.
    pub fn from_version_text(text: &str) -> Self {
        Database::of(recognised(text).next().unwrap_or(&UNKNOWN), text)
    }

    fn of(product: &'static Product, text: &str) -> Self {
        let after = text.split_once(product.recognition.version_after).map_or("", |(_, after)| after);
        let version = after
            .split([' ', ',', '(', '\n'])
            .find(|word| word.strip_prefix('v').unwrap_or(word).starts_with(|c: char| c.is_ascii_digit()))
            .unwrap_or("");
        Database {
            product,
            version_text: cut(text).into_owned(),
            version: cut(version).into_owned(),
            schema: None,
        }
    }

    /// True if the version is `major.minor` or later; false if the version is unknown.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        let mut numbers = self
            .version
            .trim_start_matches('v')
            .split(|c: char| !c.is_ascii_digit())
            .map(|number| number.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        !self.version.is_empty() && version >= (major, minor)
    }
}

/// Asks the server for its product and version. A product without facts gets the generic ones.
///
/// # Errors
/// The connection is lost. A server that can't answer is an unknown product.
pub fn detect(conn: &mut Connection) -> Result<Database, Error> {
    /// The query that distinguishes the products.
    const QUESTION: &str = "SELECT version()";
    match conn.value(QUESTION) {
        Ok(text) => {
            let text = text.unwrap_or_default();
            let product = confirmed(conn, recognised(&text))?;
            let mut database = Database::of(product, &text);
            if database.version.is_empty() {
                database.version = cut(conn.parameter("server_version").unwrap_or("")).into_owned();
            }
            Ok(database)
        }
        Err(isobench_pgwire::Error::Server(_)) => Ok(Database::from_version_text("")),
        Err(error) => Err(Error::of(error, QUESTION)),
    }
}

/// The products whose answer to `SELECT version()` this may be, in their order.
fn recognised(text: &str) -> impl Iterator<Item = &'static Product> {
    PRODUCTS.iter().copied().filter(move |product| {
        text.contains(product.recognition.contains)
            && !product.recognition.lacks.iter().any(|mark| text.contains(mark))
    })
}

/// The first of these products that the server confirms to be, where its version text doesn't decide.
fn confirmed(
    conn: &mut Connection,
    products: impl Iterator<Item = &'static Product>,
) -> Result<&'static Product, Error> {
    for product in products {
        let Some(query) = product.recognition.confirmed_by else { return Ok(product) };
        match conn.value(query) {
            Ok(Some(_)) => return Ok(product),
            Ok(None) | Err(isobench_pgwire::Error::Server(_)) => {}
            Err(error) => return Err(Error::of(error, query)),
        }
    }
    Ok(&UNKNOWN)
}

/// True if the error says that a table doesn't exist. H2 has a code of its own.
pub(crate) fn is_undefined_table(code: SqlState) -> bool {
    code == SqlState::UNDEFINED_TABLE || matches!(code.as_str(), "42S02" | "42S04")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_recognised_by_version_texts() {
        let table = [
            (
                "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
                "PostgreSQL",
                "15.18",
            ),
            ("PostgreSQL 18beta1 on x86_64-pc-linux-gnu", "PostgreSQL", "18beta1"),
            ("CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)", "CockroachDB", "v20.1.5"),
            (
                "CockroachDB CCL v23.2.1 (x86_64-pc-linux-gnu, built 2024/01/18 05:03:31, go1.21.5)",
                "CockroachDB",
                "v23.2.1",
            ),
            (
                "PostgreSQL 11.2-YB-2.13.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang",
                "YugabyteDB",
                "2.13.0.0-b0",
            ),
            ("PostgreSQL 15.12-YB-2.25.1.0-b381 on aarch64-unknown-linux-gnu", "YugabyteDB", "2.25.1.0-b381"),
            ("PostgreSQL 16", "Aurora DSQL", "16"),
            ("PostgreSQL 8.2.23 server protocol using H2 2.4.240 (2025-09-22)", "H2", "2.4.240"),
            (
                "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc, Redshift 1.0.12103",
                "unknown",
                "8.0.2",
            ),
            ("PostgreSQL 9.5-RisingWave-2.0.0 (abc)", "unknown", "9.5-RisingWave-2.0.0"),
            ("PostgreSQL 12.0 (ArcadeDB 26.10.2)", "unknown", "12.0"),
            ("CrateDB 5.8.1 (built 1234)", "unknown", ""),
            ("", "unknown", ""),
        ];
        for (text, product, version) in table {
            let found = Database::from_version_text(text);
            assert_eq!((found.product.name, found.version.as_str()), (product, version), "{text}");
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let at = |text: &str, major, minor| Database::from_version_text(text).at_least(major, minor);
        assert!(at("PostgreSQL 14.0 on x", 14, 0));
        assert!(at("PostgreSQL 18beta1 on x", 14, 0));
        assert!(!at("PostgreSQL 9.6.24 on x", 14, 0));
        assert!(at("CockroachDB CCL v23.2.1 (x)", 21, 2));
        assert!(!at("CockroachDB OSS v20.1.5 (x)", 21, 2));
        assert!(!at("", 0, 0));
    }
}
