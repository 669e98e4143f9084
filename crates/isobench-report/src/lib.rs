//! The versioned result document and its renderings.
