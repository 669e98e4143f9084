//! The PostgreSQL frontend protocol without I/O, connection strings, and sockets at the edge.
