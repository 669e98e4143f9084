//! What goes into a recording comes out of it, however it is kept.
