//! Test equipment: simulated and scripted servers, a shared embedded PostgreSQL.
