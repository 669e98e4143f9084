//! The server under test: its product, its tables, their starting state and their invariants.
