//! The table of server products, one file each.

mod aurora_dsql;
mod cockroachdb;
mod h2;
mod postgresql;
mod unknown;
mod yugabytedb;

pub use aurora_dsql::AURORA_DSQL;
pub use cockroachdb::COCKROACHDB;
pub use h2::H2;
pub use postgresql::POSTGRESQL;
pub use unknown::UNKNOWN;
pub use yugabytedb::YUGABYTEDB;

use crate::product::Product;

/// Every product that can be recognised, in this order: the first match wins.
pub static PRODUCTS: [&Product; 5] = [&COCKROACHDB, &YUGABYTEDB, &H2, &AURORA_DSQL, &POSTGRESQL];

impl Product {
    /// The product with this name, in any case; the error is a sentence with the names that exist.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<&'static Product, String> {
        let known = PRODUCTS.into_iter().find(|product| product.name.eq_ignore_ascii_case(name));
        known.ok_or_else(|| {
            let names: Vec<&str> = PRODUCTS.into_iter().rev().map(|product| product.name).collect();
            format!("unknown server \"{name}\"; use one of {}", names.join(", "))
        })
    }
}
