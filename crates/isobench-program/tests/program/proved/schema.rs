//! Random small schemas: keys, unique indexes, foreign keys, conditions, partitions and inheritance.

use std::fmt::Write;

use super::dice::Dice;

/// A table as the scripts know it. All of its columns are integers.
#[derive(Clone)]
pub struct Table {
    pub name: String,
    /// The columns of its primary key; empty if the server numbers its rows.
    pub key: Vec<&'static str>,
    /// All columns but numbers of the server, the key first.
    pub columns: Vec<&'static str>,
    /// The table that its column `p` refers to.
    pub parent: Option<usize>,
    /// Scripts insert and delete rows, and change keys. The others have a row for each key.
    pub changing: bool,
    /// Unique columns of ON CONFLICT.
    pub conflict: Vec<&'static str>,
    /// It has rows of its own in each of these, by their names with ONLY where it has to be.
    pub stored: Vec<String>,
}

/// Tables, and the SQL that makes them.
#[derive(Clone, Default)]
pub struct Schema {
    pub tables: Vec<Table>,
    pub setup: String,
}

impl Schema {
    pub fn random(dice: &mut Dice) -> Schema {
        let mut schema = Schema::default();
        let count = [1, 2, 2, 3][dice.below(4)];
        for number in 0..count {
            schema.add(number, dice);
        }
        schema
    }

    /// Tables that are written by hand: their columns by their names.
    pub fn known(setup: &str, tables: &[(&str, &[&'static str])]) -> Schema {
        let table = |(name, columns): &(&str, &[&'static str])| Table {
            name: (*name).to_owned(),
            key: Vec::new(),
            columns: columns.to_vec(),
            parent: None,
            changing: true,
            conflict: Vec::new(),
            stored: vec![(*name).to_owned()],
        };
        Schema { tables: tables.iter().map(table).collect(), setup: setup.to_owned() }
    }

    fn add(&mut self, number: usize, dice: &mut Dice) {
        let name = format!("t{number}");
        if number > 0 && dice.chance(20) {
            return self.add_numbered(name, dice);
        }
        let two = dice.chance(20);
        let changing = dice.chance(50);
        let key = if two { vec!["k", "k2"] } else { vec!["k"] };
        let mut columns = key.clone();
        columns.extend(["v", "w"]);
        let with_u = dice.chance(45);
        let partitioned = dice.chance(15);
        let inherited = !partitioned && dice.chance(10);
        let parent = self.parent(dice);
        if with_u {
            columns.push("u");
        }
        if parent.is_some() {
            columns.push("p");
        }
        let mut parts = vec!["k int".to_owned()];
        if two {
            parts.push("k2 int".to_owned());
        }
        parts.push("v int NOT NULL DEFAULT 1".to_owned());
        parts.push("w int NOT NULL DEFAULT 0".to_owned());
        if with_u {
            parts.push("u int".to_owned());
        }
        if let Some(parent) = parent {
            parts.push(format!("p int {}", self.reference(parent, dice)));
        }
        if dice.chance(20) {
            parts.push("s serial".to_owned());
        }
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        if dice.chance(20) {
            parts.push("CHECK (v + w < 7)".to_owned());
        }
        let setup = &mut self.setup;
        write!(setup, "CREATE TABLE {name} ({})", parts.join(", ")).unwrap();
        let mut stored = vec![name.clone()];
        if partitioned {
            write!(
                setup,
                " PARTITION BY LIST (k); CREATE TABLE {name}_one PARTITION OF {name} FOR VALUES IN (1); \
                 CREATE TABLE {name}_rest PARTITION OF {name} DEFAULT"
            )
            .unwrap();
        }
        setup.push_str(";\n");
        let mut conflict = key.clone();
        if with_u && !partitioned {
            let unique = match dice.below(6) {
                0 | 1 => {
                    if dice.chance(30) {
                        conflict = vec!["u"];
                    }
                    format!("ALTER TABLE {name} ADD UNIQUE (u);\n")
                }
                2 => format!("CREATE UNIQUE INDEX ON {name} (u) WHERE v > 0;\n"),
                3 => format!("CREATE UNIQUE INDEX ON {name} ((u + 0));\n"),
                4 => format!("ALTER TABLE {name} ADD UNIQUE (u) DEFERRABLE INITIALLY DEFERRED;\n"),
                _ => String::new(),
            };
            setup.push_str(&unique);
        }
        let keys = if changing { "generate_series(1, 2)" } else { "generate_series(0, 9)" };
        let seconds = if changing { "generate_series(1, 2)" } else { "generate_series(0, 4)" };
        let value = |column: &&str| match *column {
            "k2" => "b",
            "v" => "a % 4",
            "w" => "(a + 1) % 3",
            "u" if two => "10 * a + b",
            "k" | "u" => "a",
            _ => "1 + a % 2",
        };
        let values: Vec<&str> = columns.iter().map(value).collect();
        let from = if two { format!("{keys} a, {seconds} b") } else { format!("{keys} a") };
        writeln!(
            setup,
            "INSERT INTO {name} ({}) SELECT {} FROM {from};",
            columns.join(", "),
            values.join(", ")
        )
        .unwrap();
        if inherited {
            let values = columns.iter().map(|column| if *column == "p" { "1" } else { "3" });
            let values: Vec<&str> = values.collect();
            writeln!(
                setup,
                "CREATE TABLE {name}_child () INHERITS ({name}); INSERT INTO {name}_child ({}) VALUES ({});",
                columns.join(", "),
                values.join(", ")
            )
            .unwrap();
            stored = vec![format!("ONLY {name}"), format!("{name}_child")];
        }
        self.tables.push(Table { name, key, columns, parent, changing, conflict, stored });
    }

    /// A table whose rows the server numbers.
    fn add_numbered(&mut self, name: String, dice: &mut Dice) {
        let parent = self.parent(dice);
        let mut columns = vec!["v", "w"];
        let mut reference = String::new();
        if let Some(parent) = parent {
            columns.push("p");
            reference = format!(", p int {}", self.reference(parent, dice));
        }
        writeln!(
            self.setup,
            "CREATE TABLE {name} (id bigserial PRIMARY KEY, v int NOT NULL DEFAULT 1, w int NOT NULL DEFAULT 0{reference});\n\
             INSERT INTO {name} (v, w) VALUES (1, 1), (2, 1);"
        )
        .unwrap();
        let stored = vec![name.clone()];
        let (key, conflict) = (Vec::new(), Vec::new());
        self.tables.push(Table { name, key, columns, parent, changing: true, conflict, stored });
    }

    fn parent(&self, dice: &mut Dice) -> Option<usize> {
        let fits = |table: &Table| table.key.len() == 1 && table.stored.len() == 1;
        let fitting: Vec<usize> = (0..self.tables.len()).filter(|place| fits(&self.tables[*place])).collect();
        (!fitting.is_empty() && dice.chance(55)).then(|| fitting[dice.below(fitting.len())])
    }

    fn reference(&self, parent: usize, dice: &mut Dice) -> String {
        let actions =
            ["", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON DELETE RESTRICT", " ON UPDATE CASCADE"];
        let deferred = if dice.chance(25) { " DEFERRABLE INITIALLY DEFERRED" } else { "" };
        format!("REFERENCES {}{}{deferred}", self.tables[parent].name, dice.one_of(&actions))
    }

    /// All rows that scripts can know.
    pub fn contents(&self) -> String {
        let rows = |table: &Table| {
            let columns = table.columns.join(", ");
            format!(
                "SELECT '{0}' AS t, row({columns})::text AS r, tableoid::regclass::text AS o FROM {0}",
                table.name
            )
        };
        let all: Vec<String> = self.tables.iter().map(rows).collect();
        format!("{} ORDER BY t, r, o", all.join(" UNION ALL "))
    }

    fn saved(&self) -> impl Iterator<Item = (&str, String)> {
        let all = self.tables.iter().flat_map(|table| &table.stored);
        all.map(|name| (name.as_str(), format!("saved_{}", name.trim_start_matches("ONLY "))))
    }

    /// Keeps the rows as they are.
    pub fn save(&self) -> String {
        let mut text = String::new();
        for (from, to) in self.saved() {
            write!(text, "CREATE TABLE saved.{to} AS SELECT * FROM {from};").unwrap();
        }
        text
    }

    /// Puts them back. Sequences go on.
    pub fn restore(&self) -> String {
        let mut text = String::new();
        for (name, saved) in self.saved() {
            let to = name.trim_start_matches("ONLY ");
            write!(text, "DELETE FROM {name}; INSERT INTO {to} SELECT * FROM saved.{saved};").unwrap();
        }
        text
    }
}
