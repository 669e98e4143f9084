//! The pgbench script language: parses scripts, evaluates expressions, draws pgbench's random numbers.
