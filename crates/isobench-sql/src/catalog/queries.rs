//! The queries of the catalogs. They work on PostgreSQL 14 to 18, and name every table and function with its
//! schema, so that no object of a user can stand in.

/// Whether queries are compiled. The server takes some of those below for so expensive that it would, which takes far
/// longer than the queries (PostgreSQL manual, "When to JIT?").
pub(super) const JIT: &str = "SELECT pg_catalog.current_setting('jit', true)";

/// Version, handling of backslashes, and one row for each schema of the search path.
pub(super) const SETTINGS: &str = "
SELECT pg_catalog.current_setting('server_version_num'),
       pg_catalog.current_setting('standard_conforming_strings'), s.name,
       pg_catalog.current_setting('DateStyle') LIKE 'ISO%'
FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS s(name, place)
ORDER BY s.place";

/// The relations.
pub(super) const RELATIONS: &str = "
WITH RECURSIVE ancestor (relid, root, depth) AS (
    SELECT inhrelid, inhparent, 1 FROM pg_catalog.pg_inherits
    UNION ALL
    SELECT a.relid, i.inhparent, a.depth + 1
    FROM ancestor a JOIN pg_catalog.pg_inherits i ON i.inhrelid = a.root
), writing (oid) AS (
    SELECT oid FROM pg_catalog.pg_proc
    WHERE provolatile = 'v' AND pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
), calls (relid) AS (
    SELECT d.adrelid FROM pg_catalog.pg_attrdef d
    JOIN pg_catalog.pg_depend e ON e.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND e.objid = d.oid
    JOIN writing w ON e.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND e.refobjid = w.oid
    UNION
    SELECT r.ev_class FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_depend e ON e.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND e.objid = r.oid
    JOIN writing w ON e.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND e.refobjid = w.oid
)
SELECT n.nspname, c.relname,
       CASE WHEN n.nspname IN ('pg_catalog', 'information_schema') THEN '*'
            WHEN c.relkind = 'r' AND m.amname <> 'heap' THEN '?' ELSE c.relkind END,
       c.relpersistence = 't', c.relispartition, c.relrowsecurity,
       EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid),
       EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid),
       rn.nspname, rc.relname,
       EXISTS (SELECT FROM calls WHERE calls.relid = c.oid),
       c.relkind <> 'S' AND pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       1 = (SELECT pg_catalog.count(*) FROM pg_catalog.pg_index i
            WHERE i.indrelid = c.oid AND (i.indisunique OR i.indisexclusion)),
       c.oid
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
LEFT JOIN LATERAL (SELECT a.root FROM ancestor a WHERE a.relid = c.oid ORDER BY a.depth DESC LIMIT 1) r ON true
LEFT JOIN pg_catalog.pg_class rc ON rc.oid = r.root
LEFT JOIN pg_catalog.pg_namespace rn ON rn.oid = rc.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname <> 'pg_toast'";

/// The condition on the system's functions that may look at more than values and rows: volatile ones, except for
/// those that only compute a value, wait, or give out a number of a sequence; and those that look at catalogs,
/// snapshots and statistics.
macro_rules! looks {
    () => {
        "p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.prorettype <> 2279 AND (\
         p.provolatile = 'v' AND p.proname !~ '^(random|random_normal|setseed|nextval|currval|lastval|\
clock_timestamp|timeofday|gen_random_uuid|uuidv4|uuidv7|pg_sleep|pg_sleep_for|pg_sleep_until|pg_notify|\
pg_advisory_(xact_)?lock(_shared)?|pg_advisory_unlock(_shared|_all)?)$' \
         OR p.provolatile = 's' AND p.proname ~ '^(pg_|has_|txid_|to_reg|mxid_age|row_security_active|currtid|\
(obj|col|shobj)_description|inet_|query_to_|table_to_|schema_to_|database_to_|cursor_to_|ts_stat|ts_rewrite|lo_)' \
           AND p.proname !~ '^(pg_typeof|pg_column_size|pg_trigger_depth|pg_backend_pid|pg_client_encoding|\
pg_size_pretty|pg_size_bytes|pg_collation_for|pg_my_temp_schema|pg_conf_load_time|pg_postmaster_start_time|\
pg_current_xact_id|pg_current_xact_id_if_assigned|txid_current|txid_current_if_assigned|pg_timezone_.*|\
inet_(in|out|send|recv|merge|same_family|gist.*|spgist.*))$')"
    };
}

/// The functions in a stored tree of an expression, in a query.
macro_rules! functions_of {
    ($tree:literal) => {
        concat!(
            "SELECT FROM pg_catalog.regexp_matches(",
            $tree,
            "::pg_catalog.text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([0-9]+)', 'g') AS called(oid) \
             JOIN pg_catalog.pg_proc p ON p.oid = called.oid[1]::pg_catalog.oid WHERE ",
            looks!()
        )
    };
}

/// The triggers: the bits of their events, whether the function is the system's own, whether they have a
/// condition, and the source of functions in PL/pgSQL, unless the condition calls a function of a user.
pub(super) const TRIGGERS: &str = concat!("
SELECT n.nspname, c.relname, t.tgtype::pg_catalog.int4,
       p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace, t.tgqual IS NOT NULL,
       CASE WHEN l.lanname = 'plpgsql' AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_depend d
           WHERE d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass AND d.objid = t.oid
             AND d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass)
             AND d.refobjid <> t.tgfoid)
         AND NOT EXISTS (", functions_of!("t.tgqual"), ")
       THEN p.prosrc END,
       p.oid, c.oid, t.tgdeferrable OR t.tgoldtable IS NOT NULL OR t.tgnewtable IS NOT NULL
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE NOT t.tgisinternal AND t.tgenabled <> 'D'");

/// The functions of users whose bodies may be read: name, language, source, the names, types and modes of their
/// parameters, the search path that they set, and the type that they return. Not those with parameters of any type, other
/// settings, or defaults that call functions.
pub(super) const ROUTINES: &str = concat!("
WITH types (oid, name, pseudo) AS (
    SELECT t.oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.typname), t.typtype = 'p'
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
), arguments (oid, list) AS (
    SELECT p.oid, pg_catalog.json_agg(pg_catalog.json_build_array(COALESCE(p.proargnames[a.place], ''), t.name,
                                                                  COALESCE(p.proargmodes[a.place], 'i')) ORDER BY a.place)
    FROM pg_catalog.pg_proc p
    CROSS JOIN LATERAL pg_catalog.unnest(COALESCE(p.proallargtypes, p.proargtypes::pg_catalog.oid[]))
        WITH ORDINALITY AS a(type, place)
    LEFT JOIN types t ON t.oid = a.type AND NOT t.pseudo
    GROUP BY p.oid
)
SELECT f.oid, f.proname, l.lanname,
       CASE WHEN f.prosrc <> '' THEN f.prosrc
            ELSE substring(pg_catalog.pg_get_functiondef(f.oid) FROM 'BEGIN ATOMIC.*|RETURN .*') END,
       COALESCE(a.list::pg_catalog.text, '[]'),
       substring(f.proconfig[1] FROM '^search_path=(.*)$'),
       CASE WHEN NOT r.pseudo THEN r.name END
FROM pg_catalog.pg_proc f
JOIN pg_catalog.pg_language l ON l.oid = f.prolang
JOIN types r ON r.oid = f.prorettype
LEFT JOIN arguments a ON a.oid = f.oid
WHERE f.pronamespace NOT IN ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
  AND f.prokind = 'f' AND l.lanname IN ('sql', 'plpgsql') AND f.prosupport = 0
  AND COALESCE(pg_catalog.cardinality(f.proconfig) = 1 AND f.proconfig[1] LIKE 'search_path=%', f.proconfig IS NULL)
  AND (f.pronargdefaults = 0
       OR NOT EXISTS (", functions_of!("f.proargdefaults"), ")
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                      WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = f.oid
                        AND d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass)))");

/// The columns of users' relations.
pub(super) const COLUMNS: &str = "
SELECT n.nspname, c.relname, a.attname,
       CASE WHEN a.atttypid IN (20, 21, 23) THEN 'integer' WHEN a.atttypid = 16 THEN 'boolean'
            WHEN a.atttypid IN (25, 1043) AND l.collisdeterministic THEN 'text' WHEN a.atttypid = 2950 THEN 'uuid'
            WHEN a.atttypid = 1700 THEN 'numeric' WHEN a.atttypid = 1082 THEN 'date'
            WHEN a.atttypid = 1114 THEN 'timestamp' WHEN a.atttypid = 1184 THEN 'timestamptz'
            WHEN t.typtype = 'e' THEN 'enum'
            WHEN t.typtype IN ('c', 'd') THEN 'composite' ELSE 'scalar' END,
       a.attgenerated <> '', a.attnotnull,
       CASE WHEN EXISTS (
           SELECT FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
           AND a.attgenerated = '' AND pg_catalog.pg_get_expr(d.adbin, d.adrelid)
               ~ '^(gen_random_uuid[(][)]|uuidv[47][(][)])$') THEN '0'
       ELSE (SELECT pg_catalog.min(s.seqrelid::bigint)::text FROM pg_catalog.pg_sequence s
             WHERE NOT s.seqcycle AND s.seqincrement > 0 AND (
             a.attidentity <> '' AND EXISTS (
                 SELECT FROM pg_catalog.pg_depend e WHERE e.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                 AND e.objid = s.seqrelid AND e.deptype = 'i'
                 AND e.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                 AND e.refobjid = a.attrelid AND e.refobjsubid = a.attnum)
             OR a.attgenerated = '' AND EXISTS (
                 SELECT FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_depend e ON e.objid = d.oid
                 WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
                 AND e.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
                 AND e.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND e.refobjid = s.seqrelid
                 AND pg_catalog.pg_get_expr(d.adbin, d.adrelid) ~ '^nextval[(]''[^'']*''::regclass[)]$'))) END,
       a.attcollation IN (950, 951) OR a.attcollation = 100 AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
           AND pg_catalog.concat(d.datctype, ' ', pg_catalog.to_jsonb(d) ->> 'daticulocale', ' ',
                                 pg_catalog.to_jsonb(d) ->> 'datlocale') ~* '(^| )(tr|az|lt)'),
       a.attnum,
       a.atttypid IN (16, 17, 18, 19, 20, 21, 23, 26, 1082, 1083, 1114, 1184, 2950)
       OR a.atttypid IN (25, 1043) AND l.collisdeterministic OR a.atttypid = 1700 AND a.atttypmod >= 0
       OR t.typtype = 'e',
       EXISTS (
           SELECT FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
           AND a.attgenerated = '' AND pg_catalog.pg_get_expr(d.adbin, d.adrelid)
               ~* '^[(]?(now[(][)]|current_timestamp|current_date|localtimestamp|(clock|statement|transaction)_timestamp[(][)])')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY c.oid, a.attnum";

/// The columns of the indexes that tell rows apart and change only where an UPDATE sets them, the
/// best index of a table first: the primary key, then those with the fewest columns.
pub(super) const KEYS: &str = "
SELECT n.nspname, c.relname, i.indexrelid, a.attname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL pg_catalog.generate_series(0, i.indnkeyatts - 1) AS g(place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[g.place]
WHERE i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS o(place)
                  JOIN pg_catalog.pg_attribute b ON b.attrelid = c.oid AND b.attnum = i.indkey[o.place]
                  WHERE NOT b.attnotnull OR b.attgenerated <> '')
ORDER BY c.oid, i.indisprimary DESC, i.indnkeyatts, i.indexrelid, g.place";

/// The foreign keys, a row for each column.
pub(super) const FOREIGN_KEYS: &str = "
SELECT f.oid, fn.nspname, fc.relname, fa.attname, rn.nspname, rc.relname, ra.attname,
       f.confdeltype, f.confupdtype, f.condeferrable,
       f.convalidated AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t
                                      WHERE t.tgconstraint = f.oid AND t.tgenabled NOT IN ('O', 'A'))
FROM pg_catalog.pg_constraint f
JOIN pg_catalog.pg_class fc ON fc.oid = f.conrelid
JOIN pg_catalog.pg_namespace fn ON fn.oid = fc.relnamespace
JOIN pg_catalog.pg_class rc ON rc.oid = f.confrelid
JOIN pg_catalog.pg_namespace rn ON rn.oid = rc.relnamespace
CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(f.conkey), pg_catalog.unnest(f.confkey)) AS k(own, other)
JOIN pg_catalog.pg_attribute fa ON fa.attrelid = f.conrelid AND fa.attnum = k.own
JOIN pg_catalog.pg_attribute ra ON ra.attrelid = f.confrelid AND ra.attnum = k.other
WHERE f.contype = 'f'
ORDER BY f.oid, k.own";

/// The extensions whose functions compute values: they neither write nor read tables.
macro_rules! pure {
    () => {
        "('btree_gin', 'btree_gist', 'citext', 'cube', 'earthdistance', 'fuzzystrmatch', 'hstore', 'intarray', \
         'isn', 'ltree', 'pg_trgm', 'pgcrypto', 'unaccent', 'uuid-ossp')"
    };
}

/// The beginning of a query: the functions of these extensions, by OID.
macro_rules! pure_functions {
    () => {
        concat!(
            "
WITH pure (oid) AS (
    SELECT d.objid FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e'
      AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
      AND e.extname IN ",
            pure!(),
            "
)"
        )
    };
}

/// What may read or write tables where it is called, by OID: functions of users, operators with such functions,
/// and types that call them where a value becomes one of theirs.
pub(super) const CALLED: &str = concat!(pure_functions!(), ", functions (oid) AS (
    SELECT p.oid FROM pg_catalog.pg_proc p
    WHERE p.pronamespace NOT IN ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
      AND p.oid NOT IN (SELECT oid FROM pure)
)
SELECT 'f', f.oid, p.proname FROM functions f JOIN pg_catalog.pg_proc p ON p.oid = f.oid
UNION ALL
SELECT 'o', o.oid, o.oprname FROM pg_catalog.pg_operator o WHERE o.oprcode::pg_catalog.oid IN (SELECT oid FROM functions)
UNION ALL
SELECT 't', t.oid, t.typname FROM pg_catalog.pg_type t
WHERE t.typinput::pg_catalog.oid IN (SELECT oid FROM functions)
   OR t.typoutput::pg_catalog.oid IN (SELECT oid FROM functions)");

/// The functions by name: aggregate, set, writes, reads, plain.
pub(super) const FUNCTIONS: &str = concat!(pure_functions!(), ", functions (name, kind, set, system, volatile) AS (
    SELECT p.proname, p.prokind, p.proretset,
           n.nspname IN ('pg_catalog', 'information_schema') OR EXISTS (SELECT FROM pure WHERE pure.oid = p.oid),
           p.provolatile = 'v' OR EXISTS (
               SELECT FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc s
                 ON s.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggmfinalfn)
               WHERE a.aggfnoid::pg_catalog.oid = p.oid AND s.provolatile = 'v')
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
)
SELECT name, pg_catalog.bool_or(kind = 'a'), pg_catalog.bool_or(set),
       pg_catalog.bool_or(volatile AND NOT system), pg_catalog.bool_or(NOT system),
       pg_catalog.bool_or(kind NOT IN ('a', 'w'))
FROM functions WHERE NOT system OR kind = 'a' OR set GROUP BY name");

/// The operators of users, and whether their functions are volatile; not those in C that only compute a value.
pub(super) const OPERATORS: &str = concat!(
    "
SELECT o.oprname, pg_catalog.bool_or(p.provolatile = 'v')
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE n.nspname <> 'pg_catalog' AND NOT (l.lanname = 'c' AND p.provolatile = 'i') AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    WHERE d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
      AND d.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND d.objid = o.oid AND e.extname IN ",
    pure!(),
    ")
GROUP BY o.oprname"
);

/// The system's functions, and whether they may do more than compute a value.
pub(super) const SYSTEM_FUNCTIONS: &str = concat!(
    "
SELECT p.oid, p.proname, ",
    looks!(),
    "
FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace"
);

/// The texts of code that statements reach by a name, which follows the kind: relations and types, functions,
/// operators, casts, functions of other languages.
pub(super) const HIDDEN: &str = concat!(pure_functions!(), "
SELECT 'n', c.relname, pg_catalog.concat_ws(' ; ',
    CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid) END,
    (SELECT pg_catalog.string_agg(pg_catalog.pg_get_ruledef(r.oid), ' ; ') FROM pg_catalog.pg_rewrite r
     WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'),
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ; ', pg_catalog.quote_ident(p.proname),
                substring(pg_catalog.pg_get_triggerdef(t.oid) FROM ' WHEN (.*) EXECUTE ')), ' ; ')
     FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
     WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'),
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ; ', pg_catalog.pg_get_expr(p.polqual, p.polrelid),
                pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)), ' ; ')
     FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid),
    (SELECT pg_catalog.string_agg(pg_catalog.pg_get_expr(d.adbin, d.adrelid), ' ; ')
     FROM pg_catalog.pg_attrdef d WHERE d.adrelid = c.oid),
    (SELECT pg_catalog.string_agg(pg_catalog.pg_get_expr(k.conbin, k.conrelid), ' ; ')
     FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c'),
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ; ', pg_catalog.pg_get_expr(i.indexprs, i.indrelid),
                pg_catalog.pg_get_expr(i.indpred, i.indrelid)), ' ; ')
     FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)),
    f.referring,
    (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(o.relname), ' ; ')
     FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class o ON o.oid = i.inhrelid WHERE i.inhparent = c.oid),
    (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(t.typname), ' ; ')
     FROM pg_catalog.pg_attribute a
     JOIN pg_catalog.pg_type t ON t.oid IN (a.atttypid, (SELECT e.typelem FROM pg_catalog.pg_type e WHERE e.oid = a.atttypid))
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace))
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN (SELECT k.confrelid, pg_catalog.string_agg(pg_catalog.quote_ident(r.relname), ' ; ') AS referring
           FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class r ON r.oid = k.conrelid
           WHERE k.contype = 'f' AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))
           GROUP BY k.confrelid) f ON f.confrelid = c.oid
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
UNION ALL
SELECT 'n', t.typname, pg_catalog.concat_ws(' ; ', t.typinput, t.typoutput,
    (SELECT pg_catalog.quote_ident(b.typname) FROM pg_catalog.pg_type b
     WHERE b.oid = t.typbasetype AND b.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace),
    t.typdefault,
    (SELECT pg_catalog.string_agg(pg_catalog.pg_get_expr(k.conbin, 0), ' ; ')
     FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid))
FROM pg_catalog.pg_type t
WHERE t.typtype IN ('b', 'd') AND t.typelem = 0
  AND t.typnamespace NOT IN ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
UNION ALL
SELECT CASE WHEN l.lanname IN ('sql', 'plpgsql') THEN 'n'
            WHEN l.lanname IN ('c', 'internal') AND p.provolatile = 'i' THEN 'n' ELSE '?' END, p.proname,
       pg_catalog.concat_ws(' ; ', pg_catalog.pg_get_function_arguments(p.oid), pg_catalog.pg_get_function_result(p.oid),
           CASE WHEN l.lanname NOT IN ('sql', 'plpgsql') THEN ''
                WHEN p.prosrc = '' AND p.prokind IN ('f', 'p') THEN substring(pg_catalog.pg_get_functiondef(p.oid) FROM 'BEGIN ATOMIC.*|RETURN .*')
                ELSE p.prosrc END)
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE p.pronamespace NOT IN ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
  AND p.prokind <> 'a' AND NOT (l.lanname = 'c' AND p.oid IN (SELECT oid FROM pure))
UNION ALL
SELECT 'n', p.proname, pg_catalog.concat_ws(' ; ', a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggmfinalfn)
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_aggregate a ON a.aggfnoid::pg_catalog.oid = p.oid
WHERE p.pronamespace NOT IN ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
UNION ALL
SELECT 'o', o.oprname, p.proname
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode::pg_catalog.oid
WHERE p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace AND p.oid NOT IN (SELECT oid FROM pure)
UNION ALL
SELECT 'a', '', p.proname FROM pg_catalog.pg_cast k JOIN pg_catalog.pg_proc p ON p.oid = k.castfunc
WHERE p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace AND p.oid NOT IN (SELECT oid FROM pure)");

/// Operators, operator classes, casts and functions of users, of no extension, by which the words of the system
/// may mean something else.
pub(super) const STANDING_IN: &str = "
WITH own (classid, objid, name, code) AS (
    SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid, 'operator ' || o.oprname, o.oprcode::pg_catalog.text
    FROM pg_catalog.pg_operator o
    WHERE o.oprnamespace <> 'pg_catalog'::pg_catalog.regnamespace AND EXISTS (
        SELECT FROM pg_catalog.pg_operator s
        WHERE s.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace AND s.oprname = o.oprname)
    UNION ALL
    SELECT 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid, 'operator class ' || o.opcname,
           (SELECT pg_catalog.string_agg(a.amproc::pg_catalog.text, ' ; ') FROM pg_catalog.pg_amproc a WHERE a.amprocfamily = o.opcfamily)
    FROM pg_catalog.pg_opclass o
    WHERE o.opcnamespace <> 'pg_catalog'::pg_catalog.regnamespace
    UNION ALL
    SELECT 'pg_catalog.pg_cast'::pg_catalog.regclass, c.oid, 'the cast by ' || p.proname || '()', p.proname
    FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_proc p ON p.oid = c.castfunc
    WHERE p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
    UNION ALL
    SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 'function ' || p.proname || '()', p.proname
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
      AND p.pronamespace::pg_catalog.regnamespace::pg_catalog.text = ANY (ARRAY(
          SELECT pg_catalog.quote_ident(s.name) FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS s(name, place)
          WHERE s.place < (SELECT t.place FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS t(name, place)
                           WHERE t.name = 'pg_catalog')))
      AND EXISTS (SELECT FROM pg_catalog.pg_proc s
                  WHERE s.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND s.proname = p.proname)
)
SELECT o.name, o.code FROM own o
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.classid = o.classid AND d.objid = o.objid AND d.deptype = 'e')
ORDER BY o.name";

/// The conditions of tables.
pub(super) const CHECKS: &str = "
SELECT n.nspname, c.relname, k.convalidated,
       COALESCE((SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey))::pg_catalog.text, '[]')
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype = 'c' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY k.oid";

/// The indexes that keep rows out because of others.
pub(super) const UNIQUENESS: &str = "
SELECT n.nspname, c.relname, i.indpred IS NOT NULL, NOT i.indimmediate OR COALESCE(k.condeferrable, false),
       CASE WHEN i.indexprs IS NOT NULL OR NOT i.indisunique OR COALESCE(k.contype = 'x', false)
                 OR COALESCE(pg_catalog.to_jsonb(k) ->> 'conperiod' = 'true', false) THEN '[]'
            ELSE (SELECT pg_catalog.json_agg(a.attname)::pg_catalog.text
                  FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS g(place)
                  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[g.place]) END
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')
WHERE (i.indisunique OR i.indisexclusion) AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY i.indexrelid";

/// The tables whose rows call functions of users as they are written, by schema and name, and the types that do
/// so where a value becomes one of theirs, by OID.
pub(super) const CALLS: &str = concat!("
WITH RECURSIVE pure (oid) AS (
    SELECT d.objid FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    WHERE d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
      AND e.extname IN ", pure!(), "
), called (classid, objid) AS (
    SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid FROM pg_catalog.pg_proc p
    WHERE p.pronamespace NOT IN ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
      AND p.oid NOT IN (SELECT oid FROM pure)
    UNION ALL
    SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid FROM pg_catalog.pg_operator o
    WHERE o.oprnamespace <> 'pg_catalog'::pg_catalog.regnamespace AND o.oid NOT IN (SELECT oid FROM pure)
    UNION ALL
    SELECT 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid FROM pg_catalog.pg_opclass o
    WHERE o.opcnamespace <> 'pg_catalog'::pg_catalog.regnamespace AND o.oid NOT IN (SELECT oid FROM pure)
), calling (classid, objid) AS (
    SELECT d.classid, d.objid FROM pg_catalog.pg_depend d
    JOIN called c ON c.classid = d.refclassid AND c.objid = d.refobjid
    UNION
    SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, d.oid FROM pg_catalog.pg_attrdef d
    WHERE EXISTS (", functions_of!("d.adbin"), ")
    UNION
    SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid FROM pg_catalog.pg_constraint k
    WHERE k.conbin IS NOT NULL AND EXISTS (", functions_of!("k.conbin"), ")
    UNION
    SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid FROM pg_catalog.pg_type t
    WHERE t.typdefaultbin IS NOT NULL AND EXISTS (", functions_of!("t.typdefaultbin"), ")
), types (oid) AS (
    SELECT t.oid FROM pg_catalog.pg_type t JOIN calling g ON g.objid = t.oid
     AND g.classid = 'pg_catalog.pg_type'::pg_catalog.regclass
    UNION
    SELECT k.contypid FROM pg_catalog.pg_constraint k JOIN calling g ON g.objid = k.oid
     AND g.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass WHERE k.contypid <> 0
    UNION
    SELECT more.oid FROM types JOIN LATERAL (
        SELECT t.oid FROM pg_catalog.pg_type t WHERE types.oid IN (t.typbasetype, t.typelem)
        UNION ALL
        SELECT c.reltype FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
        WHERE a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = types.oid AND c.reltype <> 0
        UNION ALL
        SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE r.rngsubtype = types.oid) more ON true
), tables (oid) AS (
    SELECT d.adrelid FROM pg_catalog.pg_attrdef d JOIN calling g ON g.objid = d.oid
     AND g.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
    UNION
    SELECT k.conrelid FROM pg_catalog.pg_constraint k JOIN calling g ON g.objid = k.oid
     AND g.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass WHERE k.contype <> 'f'
    UNION
    SELECT p.polrelid FROM pg_catalog.pg_policy p
    UNION
    SELECT COALESCE(i.indrelid, c.oid) FROM pg_catalog.pg_class c JOIN calling g ON g.objid = c.oid
     AND g.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
    LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
    UNION
    SELECT a.attrelid FROM pg_catalog.pg_attribute a JOIN types t ON t.oid = a.atttypid
)
SELECT n.nspname, c.relname, NULL FROM tables t JOIN pg_catalog.pg_class c ON c.oid = t.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
UNION ALL
SELECT NULL, types.oid::pg_catalog.text, t.typname FROM types JOIN pg_catalog.pg_type t ON t.oid = types.oid");
