//! Random statements on the tables, by a seed. Few of them are refused by the server.

use isobench_script::Prng;

/// Tables with the columns a, b, c and d.
const TABLES: [&str; 9] = ["t", "t", "u", "v", "p", "n", "k", "h", "w"];

/// Tables that are written.
const TARGETS: [&str; 9] = ["t", "t", "u", "u", "v", "p", "k", "x", "f"];

/// A generator of statements.
struct Random {
    numbers: Prng,
    /// The names given so far.
    names: u32,
}

/// The statement of a seed.
pub fn random(seed: u64) -> String {
    let mut random = Random { numbers: Prng::seed(seed), names: 0 };
    match random.below(20) {
        0..=6 => random.select(2),
        7..=13 => random.with(),
        14 | 15 => random.set_operation(),
        16 => random.merge(),
        _ => random.write(true),
    }
}

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.numbers.next_u64() % bound
    }

    fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        let place = self.below(of.len() as u64);
        of[usize::try_from(place).unwrap()]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("q{}", self.names)
    }

    fn number(&mut self) -> u64 {
        self.below(12)
    }

    /// A column of a table by an alias.
    fn column(&mut self, alias: &str) -> String {
        format!("{alias}.{}", self.one(&["a", "b", "c"]))
    }

    /// A number.
    fn value(&mut self, alias: &str) -> String {
        match self.below(9) {
            0..=3 => self.column(alias),
            4 => self.number().to_string(),
            5 => format!("{} + {}", self.column(alias), self.number()),
            6 => format!("coalesce({}, 0)", self.column(alias)),
            7 => format!("(SELECT max(i.a) FROM u AS i WHERE i.c = {})", self.column(alias)),
            _ => self.one(&["nextval('numbers')::int", "next(1)", "peek(3)", "4"]).to_owned(),
        }
    }

    fn condition(&mut self, alias: &str) -> String {
        match self.below(9) {
            0..=2 => format!("{} = {}", self.column(alias), self.number()),
            3 => format!("{} < {}", self.column(alias), self.number()),
            4 => format!("{} BETWEEN {} AND {}", self.column(alias), self.below(5), self.number()),
            5 => {
                format!("{} IN ({}, {}, {})", self.column(alias), self.below(5), self.number(), self.number())
            }
            6 => format!("{alias}.d LIKE 'd{}%' AND {}", self.below(3), self.condition(alias)),
            7 if self.chance(2) => match self.below(4) {
                0 => format!("{} = ANY ('{{{},{}}}')", self.column(alias), self.below(5), self.number()),
                1 => format!("({alias}.a, {alias}.c) > ({}, {})", self.number(), self.below(5)),
                2 => format!("upper({alias}.d) = upper('D{}')", self.below(3)),
                _ => format!("{alias}.d ILIKE '%{}' AND 1 = 1", self.below(3)),
            },
            7 if self.chance(2) => {
                format!("{} IN (SELECT i.a FROM t AS i WHERE i.c < {})", self.column(alias), self.number())
            }
            7 => format!("EXISTS (SELECT FROM v AS e WHERE e.c = {})", self.column(alias)),
            _ => format!("({} OR {})", self.condition(alias), self.condition(alias)),
        }
    }

    fn filter(&mut self, alias: &str) -> String {
        if self.chance(4) { String::new() } else { format!(" WHERE {}", self.condition(alias)) }
    }

    /// A table or a subquery with an alias.
    fn source(&mut self, depth: u32) -> (String, String) {
        let alias = self.name();
        if depth > 0 && self.chance(5) {
            let inner = self.name();
            let table = self.one(&TABLES);
            let limit = if self.chance(3) { " LIMIT 5" } else { "" };
            let filter = self.filter(&inner);
            return (format!("(SELECT a, b, c, d FROM {table} AS {inner}{filter}{limit}) AS {alias}"), alias);
        }
        (format!("{} AS {alias}", self.one(&TABLES)), alias)
    }

    fn select(&mut self, depth: u32) -> String {
        let (mut from, alias) = self.source(depth);
        let mut other = alias.clone();
        if self.chance(3) {
            let (joined, name) = self.source(depth.saturating_sub(1));
            let kind = self.one(&["JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"]);
            let on = self.one(&["a", "b", "c"]);
            from = format!("{from} {kind} {joined} ON {name}.{on} = {alias}.{on}");
            other = name;
        }
        // Along the one foreign key.
        if self.chance(12) {
            let (owner, kind) = (self.name(), self.one(&["JOIN", "LEFT JOIN"]));
            from = format!("f AS {alias} {kind} t AS {owner} ON {owner}.a = {alias}.a");
            other = owner;
        }
        let mut filter = self.filter(&alias);
        if other != alias && self.chance(2) {
            let word = if filter.is_empty() { " WHERE" } else { " AND" };
            filter = format!("{filter}{word} {}", self.condition(&other));
        }
        match self.below(11) {
            0 | 1 => {
                let what = [
                    "count(*)",
                    "max(A.a)",
                    "min(A.b)",
                    "sum(A.b), max(O.c)",
                    "count(DISTINCT A.b)",
                    "max(A.a), min(A.a)",
                    "string_agg(A.d, ',' ORDER BY A.a)",
                ];
                let what =
                    self.one(&what).replace("A.", &format!("{alias}.")).replace("O.", &format!("{other}."));
                format!("SELECT {what} FROM {from}{filter}")
            }
            2 => {
                let by = self.column(&alias);
                let having = if self.chance(3) { " HAVING count(*) > 1" } else { "" };
                let order = if self.chance(2) { " ORDER BY 1, 2" } else { "" };
                format!(
                    "SELECT {by}, count(*), sum({other}.a) FROM {from}{filter} GROUP BY {by}{having}{order}"
                )
            }
            3 => {
                let by = self.column(&alias);
                format!(
                    "SELECT DISTINCT ON ({by}) {by}, {alias}.a, {other}.d FROM {from}{filter} ORDER BY {by}, \
                    {alias}.a, {other}.a"
                )
            }
            4 => {
                let by = self.column(&alias);
                let window = self.one(&["row_number()", "sum(1)", "rank()", "count(*)"]);
                format!(
                    "SELECT {alias}.a, {window} OVER (PARTITION BY {by} ORDER BY {alias}.a) FROM {from}{filter}"
                )
            }
            5 => format!(
                "SELECT DISTINCT {}, {} FROM {from}{filter}",
                self.column(&alias),
                self.column(&other)
            ),
            10 => {
                // A page that is counted.
                let (name, table) = (self.name(), self.one(&TABLES));
                let inner = self.filter(&name);
                let what = self.one(&["count(*)", "page.a", "max(page.b)"]);
                format!(
                    "SELECT {what} FROM (SELECT {name}.a, {name}.b FROM {table} AS {name}{inner} LIMIT {}) AS page",
                    self.number()
                )
            }
            6 => {
                let lock = self.one(&[
                    "FOR UPDATE SKIP LOCKED",
                    "FOR UPDATE NOWAIT",
                    "FOR SHARE SKIP LOCKED",
                    "FOR NO KEY UPDATE SKIP LOCKED",
                ]);
                let name = self.name();
                let filter = self.filter(&name);
                let limit = if self.chance(2) { format!(" LIMIT {}", self.below(4)) } else { String::new() };
                let order = if self.chance(2) { format!(" ORDER BY {name}.a") } else { String::new() };
                format!(
                    "SELECT {name}.a, {name}.b FROM {} AS {name}{filter}{order}{limit} {lock}",
                    self.one(&["j", "j", "t", "p"])
                )
            }
            _ => {
                let (left, right) = (self.value(&alias), self.value(&other));
                let order =
                    if self.chance(2) { format!(" ORDER BY {}", self.column(&alias)) } else { String::new() };
                let limit = match self.below(9) {
                    0 => format!(" LIMIT {}", self.number()),
                    1 => format!(" LIMIT {} OFFSET {}", self.number(), self.below(3)),
                    2 => format!(" FETCH FIRST {} ROWS ONLY", 1 + self.below(5)),
                    _ => String::new(),
                };
                let star = if self.chance(8) { format!(", {alias}.*") } else { String::new() };
                format!("SELECT {left}, {right}{star} FROM {from}{filter}{order}{limit}")
            }
        }
    }

    fn set_operation(&mut self) -> String {
        let operation = self.one(&["UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"]);
        let mut branch = || {
            let alias = self.name();
            let (mut column, filter) = (self.column(&alias), self.filter(&alias));
            if self.chance(4) {
                column = format!("{column} AS x");
            }
            format!("SELECT {column} FROM {} AS {alias}{filter}", self.one(&TABLES))
        };
        let (left, right) = (branch(), branch());
        format!("{left} {operation} {right}")
    }

    fn returning(&mut self, alias: &str, always: bool) -> String {
        if !always && self.chance(2) {
            return String::new();
        }
        match self.below(6) {
            0 => format!(" RETURNING {alias}.a, nextval('numbers')::int AS b, {alias}.c, {alias}.d"),
            _ => format!(" RETURNING {alias}.a, {alias}.b, {alias}.c, {alias}.d"),
        }
    }

    /// INSERT, UPDATE or DELETE; `free` if it needn't return anything.
    fn write(&mut self, free: bool) -> String {
        let table = self.one(&TARGETS);
        let name = self.name();
        match self.below(5) {
            0 => self.insert(table, &name, free),
            1 => {
                let filter = self.filter(&name);
                let returning = self.returning(&name, !free);
                if self.chance(3) {
                    let (other, alias) = self.source(1);
                    return format!(
                        "DELETE FROM {table} AS {name} USING {other} WHERE {alias}.b = {name}.a AND {}{returning}",
                        self.condition(&name)
                    );
                }
                format!("DELETE FROM {table} AS {name}{filter}{returning}")
            }
            _ => {
                let column = if table == "v" { "a" } else { "b" };
                let set = format!("{column} = {}", self.value(&name));
                let returning = self.returning(&name, !free);
                if self.chance(3) {
                    let (other, alias) = self.source(1);
                    return format!(
                        "UPDATE {table} AS {name} SET {set} FROM {other} WHERE {alias}.a = {name}.a AND {}{returning}",
                        self.condition(&name)
                    );
                }
                let filter = self.filter(&name);
                format!("UPDATE {table} AS {name} SET {set}{filter}{returning}")
            }
        }
    }

    fn insert(&mut self, table: &str, name: &str, free: bool) -> String {
        let key = 1_000 + self.number();
        let rows = match self.below(3) {
            0 => format!("SELECT i.a + {key}, i.b, i.a + 5, 'i' FROM u AS i WHERE i.c = {}", self.below(4)),
            1 => {
                format!("VALUES ({}, nextval('numbers')::int, {key}, 'i'), ({key}, 2, 1, 'j')", self.number())
            }
            _ => format!("VALUES ({}, {}, {}, 'i')", self.number(), self.number(), self.number()),
        };
        let keys = match table {
            "v" => "(b, c)",
            "p" => "(a, c)",
            _ => "(a)",
        };
        let set = if table == "v" { "a" } else { "b" };
        let conflict = match self.below(4) {
            _ if table == "x" => String::new(),
            0 | 1 => " ON CONFLICT DO NOTHING".to_owned(),
            2 => format!(" ON CONFLICT {keys} DO UPDATE SET {set} = excluded.{set} + 1"),
            _ if keys == "(a)" && self.chance(2) => {
                format!(
                    " ON CONFLICT (a) DO UPDATE SET {set} = 7 WHERE {name}.a = {} AND 1 = 1",
                    self.number()
                )
            }
            _ => format!(" ON CONFLICT {keys} DO UPDATE SET {set} = 7 WHERE {name}.c > 3"),
        };
        let rows = if table == "f" {
            "SELECT i.a + 20, i.b, i.c, i.d FROM u AS i WHERE i.c = 2".to_owned()
        } else {
            rows
        };
        let returning = self.returning(name, !free);
        format!("INSERT INTO {table} AS {name} (a, b, c, d) {rows}{conflict}{returning}")
    }

    fn merge(&mut self) -> String {
        let table = self.one(&["t", "u", "p", "k"]);
        let source = self.one(&["u", "v", "n", "t"]);
        let condition = self.condition("s");
        let insert = if self.chance(2) { " WHEN NOT MATCHED AND s.a > 3 THEN DO NOTHING" } else { "" };
        let matched = self.one(&["UPDATE SET b = s.b + 1", "DELETE", "DO NOTHING"]);
        format!(
            "MERGE INTO {table} AS m USING (SELECT DISTINCT ON (a) a, b, c FROM {source} WHERE a < 20 ORDER BY a) AS s \
             ON m.a = s.a WHEN MATCHED AND {condition} THEN {matched}{insert}"
        )
    }

    /// WITH: queries and data-modifying statements, and what is made of them.
    fn with(&mut self) -> String {
        let count = 1 + self.below(3);
        let mut parts = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for _ in 0..count {
            let name = self.name();
            let body = match (self.below(8), names.last()) {
                (0, _) => {
                    let (from, alias) = self.source(0);
                    format!(
                        "SELECT {alias}.a, {alias}.b, {alias}.c, {alias}.d FROM {from}{}",
                        self.filter(&alias)
                    )
                }
                (1 | 2, Some(before)) => {
                    let (before, target) = (before.clone(), self.name());
                    let table = self.one(&["t", "u", "k"]);
                    let returning = self.returning(&target, true);
                    let value = self.value(&target);
                    format!(
                        "UPDATE {table} AS {target} SET b = {value} FROM {before} WHERE {target}.a = \
                        {before}.a{returning}"
                    )
                }
                _ => self.write(false),
            };
            parts.push(format!("{name} AS ({body})"));
            names.push(name);
        }
        let place = usize::try_from(self.below(count)).unwrap();
        let read = names[place].clone();
        let main = self.main_of_with(&read, &names);
        format!("WITH {} {main}", parts.join(", "))
    }

    fn main_of_with(&mut self, read: &str, names: &[String]) -> String {
        let limit = if self.chance(5) { format!(" LIMIT {}", self.below(3)) } else { String::new() };
        match self.below(14) {
            0 | 1 => format!("SELECT {read}.a, {read}.b FROM {read}{limit}"),
            2 => format!("SELECT count(*), max({read}.a) FROM {read}"),
            3 => format!("SELECT {read}.b, count(*) FROM {read} GROUP BY {read}.b"),
            4 => "SELECT 1 AS one".to_owned(),
            5 => "SELECT nextval('numbers'), next(2)".to_owned(),
            6 => {
                let counts: Vec<String> =
                    names.iter().map(|name| format!("(SELECT count(*) FROM {name})")).collect();
                format!("SELECT {}", counts.join(", "))
            }
            7 => format!("SELECT (SELECT {read}.a FROM {read} LIMIT 1), EXISTS (SELECT FROM {read})"),
            8 => {
                let all = names.join(", ");
                format!("SELECT {read}.a, nextval('numbers') FROM {all}{limit}")
            }
            9 => {
                let (from, alias) = self.source(1);
                let kind = self.one(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
                format!("SELECT {alias}.a, {read}.b FROM {from} {kind} {read} ON {read}.a = {alias}.a{limit}")
            }
            10 => {
                let (from, alias) = self.source(0);
                format!("SELECT count(*), max({alias}.c) FROM {from}{}", self.filter(&alias))
            }
            11 => format!(
                "SELECT {read}.a, nextval('numbers') FROM {read} WHERE {read}.b > 2 ORDER BY {read}.a"
            ),
            12 => format!("SELECT DISTINCT {read}.b FROM {read}"),
            _ => {
                let target = self.name();
                format!(
                    "UPDATE f AS {target} SET b = {read}.b FROM {read} WHERE {read}.a = {target}.a RETURNING {target}.a"
                )
            }
        }
    }
}
