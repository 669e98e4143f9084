//! The corpus of statements, a catalog as text, and descriptions of what was observed.

mod statements;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use isobench_observation::{Dark, Observed, observe_except};
use isobench_script::{
    CommandKind, ObservedRows, ObservedStatement, Referred, RowLimit, SearchValue, SearchWhen, Sql, Symbols,
    TextPart, parse,
};
use isobench_sql::{
    Catalog, Column, ColumnType, Events, ForeignKey, FunctionFacts, Inheritance, OnChange, Relation,
    RelationKind, Triggers,
};

/// The folder of the corpus.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// The statements, each with its section.
pub fn statements() -> Vec<(String, String)> {
    statements::of(&corpus())
}

/// The catalog of the corpus's schema, as read from a server and kept as text.
pub fn catalog(version: u32) -> Catalog {
    let mut catalog = read(&std::fs::read_to_string(corpus().join("catalog.txt")).unwrap());
    catalog.version = version;
    catalog
}

/// What becomes of one command.
pub struct Seen {
    pub symbols: Symbols,
    pub original: Sql,
    pub sql: Sql,
    pub observed: Observed,
}

/// Observes a script with one SQL command, perhaps after others.
pub fn see(text: &str, catalog: &Catalog) -> Seen {
    see_except(text, catalog, &|_| None)
}

/// The same, unless there is a reason to send a statement as written.
pub fn see_except(text: &str, catalog: &Catalog, reason: &dyn Fn(&str) -> Option<Dark>) -> Seen {
    let mut symbols = Symbols::new();
    let mut script = parse("corpus.sql", text, &mut symbols).unwrap();
    let sql = |command: &isobench_script::Command| match &command.kind {
        CommandKind::Sql(sql) => Some(sql.clone()),
        _ => None,
    };
    let first = |script: &isobench_script::Script| {
        script.commands.iter().find_map(sql).unwrap_or_else(|| panic!("no SQL: {text}"))
    };
    let original = first(&script);
    let observed = observe_except([&mut script], catalog, reason);
    Seen { symbols, original, sql: first(&script), observed }
}

/// A catalog as text, without the system's own tables and functions. The schema of temporary tables
/// has the number of the session.
pub fn write(catalog: &Catalog) -> String {
    let text = write_all(catalog);
    match catalog.search_path.iter().find(|schema| schema.starts_with("pg_temp")) {
        Some(schema) => text.replace(schema.as_str(), "pg_temp"),
        None => text,
    }
}

fn write_all(catalog: &Catalog) -> String {
    let mut text = String::new();
    let path: Vec<&str> = catalog.search_path.iter().map(String::as_str).collect();
    writeln!(text, "path {} {}", path.join(","), catalog.standard_strings).unwrap();
    for relation in &catalog.relations {
        if relation.kind == RelationKind::System && relation.name != "pg_class" && relation.name != "pg_am" {
            continue;
        }
        let columns: Vec<String> = relation.columns.iter().map(described_column).collect();
        writeln!(
            text,
            "relation|{}|{}|{:?}|{}|{}|{}|{}|{}|{}|{}|{}|{:?}|{}",
            relation.schema,
            relation.name,
            relation.kind,
            relation.temporary,
            place(&relation.inheritance),
            columns.join(","),
            relation.key.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            events(relation.triggers.unknown),
            events(relation.triggers.before_row),
            relation.rules,
            relation.row_security,
            relation.calls_writing,
            relation.only_key
        )
        .unwrap();
        let Triggers { on_insert, on_update, reads, reads_row, .. } = &relation.triggers;
        let known = [on_insert, on_update, reads].map(|names| Vec::from_iter(names.clone()).join(","));
        if known.iter().any(|names| !names.is_empty()) || *reads_row {
            writeln!(text, "known triggers|{}|{reads_row}", known.join("|")).unwrap();
        }
    }
    for key in &catalog.foreign_keys {
        writeln!(
            text,
            "reference|{}|{}|{}|{}|{}|{}|{:?}|{:?}|{}|{}",
            key.table.0,
            key.table.1,
            key.columns.join(","),
            key.referenced.0,
            key.referenced.1,
            key.referenced_columns.join(","),
            key.on_delete,
            key.on_update,
            key.valid,
            key.deferrable
        )
        .unwrap();
    }
    for name in &catalog.writing_operators {
        writeln!(text, "operator|{name}").unwrap();
    }
    for (name, facts) in catalog.functions.iter().filter(|(name, facts)| kept(name, **facts)) {
        let FunctionFacts { aggregate, set, writes, reads, plain } = facts;
        writeln!(text, "function|{name}|{aggregate}|{set}|{writes}|{reads}|{plain}").unwrap();
    }
    text
}

fn described_column(column: &Column) -> String {
    let not_null = if column.not_null { "!" } else { "" };
    format!("{}:{:?}{not_null}", column.name, column.kind)
}

/// The functions that the corpus uses.
fn kept(name: &str, facts: FunctionFacts) -> bool {
    const USED: [&str; 7] =
        ["count", "generate_series", "max", "percentile_cont", "string_agg", "sum", "row_to_json"];
    facts.reads || USED.contains(&name)
}

fn place(inheritance: &Inheritance) -> String {
    match inheritance {
        Inheritance::None => "none".to_owned(),
        Inheritance::Partition { root } => format!("partition of {}.{}", root.0, root.1),
        Inheritance::Parent => "parent".to_owned(),
        Inheritance::Child { root } => format!("child of {}.{}", root.0, root.1),
        Inheritance::Several => "several".to_owned(),
    }
}

fn events(events: Events) -> String {
    format!("{}{}{}", u8::from(events.insert), u8::from(events.update), u8::from(events.delete))
}

fn read(text: &str) -> Catalog {
    let mut catalog = Catalog::default();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("path ") {
            let (path, strings) = path.split_once(' ').unwrap();
            catalog.search_path = path.split(',').map(str::to_owned).collect();
            catalog.standard_strings = strings == "true";
            continue;
        }
        let fields: Vec<&str> = line.split('|').collect();
        match fields[0] {
            "relation" => catalog.relations.push(read_relation(&fields)),
            "reference" => catalog.foreign_keys.push(ForeignKey {
                table: (fields[1].to_owned(), fields[2].to_owned()),
                columns: list(fields[3]),
                referenced: (fields[4].to_owned(), fields[5].to_owned()),
                referenced_columns: list(fields[6]),
                on_delete: on_change(fields[7]),
                on_update: on_change(fields[8]),
                valid: fields[9] == "true",
                deferrable: fields[10] == "true",
            }),
            "known triggers" => {
                let names = |place: usize| list(fields[place]).into_iter().collect();
                let triggers = &mut catalog.relations.last_mut().unwrap().triggers;
                triggers.on_insert = names(1);
                triggers.on_update = names(2);
                triggers.reads = names(3);
                triggers.reads_row = fields[4] == "true";
            }
            "operator" => {
                catalog.writing_operators.insert(fields[1].to_owned());
            }
            _ => {
                let truth = |place: usize| fields[place] == "true";
                let facts = FunctionFacts {
                    aggregate: truth(2),
                    set: truth(3),
                    writes: truth(4),
                    reads: truth(5),
                    plain: truth(6),
                };
                catalog.functions.insert(fields[1].to_owned(), facts);
            }
        }
    }
    catalog
}

fn read_relation(fields: &[&str]) -> Relation {
    let column = |text: &str| {
        let (name, kind) = text.rsplit_once(':').unwrap();
        let not_null = kind.ends_with('!');
        let kind = match kind.trim_end_matches('!') {
            "Integer" => ColumnType::Integer,
            "Boolean" => ColumnType::Boolean,
            "Text" => ColumnType::Text,
            "Enum" => ColumnType::Enum,
            "Uuid" => ColumnType::Uuid,
            "Decimal" => ColumnType::Decimal,
            "Date" => ColumnType::Date,
            "Timestamp" => ColumnType::Timestamp,
            "Instant" => ColumnType::Instant,
            "Composite" => ColumnType::Composite,
            _ => ColumnType::Scalar,
        };
        Column {
            number: 0,
            name: name.to_owned(),
            kind,
            generated: false,
            not_null,
            plain_case: kind == ColumnType::Text,
            exact: true,
            fresh: false,
            clock: false,
        }
    };
    let bits = |text: &str| {
        let at = |place: usize| text.as_bytes()[place] == b'1';
        Events { insert: at(0), update: at(1), delete: at(2) }
    };
    Relation {
        oid: 0,
        schema: fields[1].to_owned(),
        name: fields[2].to_owned(),
        visible: false,
        shadowed: false,
        kind: match fields[3] {
            "Table" => RelationKind::Table,
            "Partitioned" => RelationKind::Partitioned,
            "View" => RelationKind::View,
            "Materialized" => RelationKind::Materialized,
            "Foreign" => RelationKind::Foreign,
            "Stored" => RelationKind::Stored,
            "System" => RelationKind::System,
            _ => RelationKind::Other,
        },
        temporary: fields[4] == "true",
        inheritance: read_place(fields[5]),
        columns: list(fields[6]).iter().map(|text| column(text)).collect(),
        key: list(fields[7]).iter().map(|place| place.parse().unwrap()).collect(),
        unique: vec![list(fields[7]).iter().map(|place| place.parse().unwrap()).collect()],
        triggers: Triggers { unknown: bits(fields[8]), before_row: bits(fields[9]), ..Triggers::default() },
        rules: fields[10] == "true",
        row_security: fields[11] == "true",
        selectable: true,
        calls_writing: fields[12] == "true",
        only_key: fields.get(13) == Some(&"true"),
        calls: false,
        checks: Vec::new(),
        uniqueness: Vec::new(),
    }
}

fn read_place(text: &str) -> Inheritance {
    let name = |text: &str| {
        let (schema, name) = text.split_once('.').unwrap();
        (schema.to_owned(), name.to_owned())
    };
    match text {
        "none" => Inheritance::None,
        "parent" => Inheritance::Parent,
        "several" => Inheritance::Several,
        _ => match text.strip_prefix("partition of ") {
            Some(root) => Inheritance::Partition { root: name(root) },
            None => Inheritance::Child { root: name(text.strip_prefix("child of ").unwrap()) },
        },
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn on_change(text: &str) -> OnChange {
    match text {
        "Cascade" => OnChange::Cascade,
        "Set" => OnChange::Set,
        "SetDefault" => OnChange::SetDefault,
        _ => OnChange::Nothing,
    }
}

/// What is known of a command, as text.
pub fn describe(seen: &Seen) -> String {
    let mut text = String::new();
    if seen.sql.parameterized == seen.original.parameterized {
        text.push_str("  as written\n");
    } else {
        writeln!(text, "> {}", seen.sql.parameterized.replace('\n', "\n> ")).unwrap();
    }
    for statement in &seen.sql.observed {
        describe_statement(seen, statement, &mut text);
    }
    for statement in &seen.observed.statements {
        for table in &statement.tables {
            let searched = if table.searched { ", searched" } else { "" };
            writeln!(
                text,
                "  [{}] {} {} {} by {}{searched}",
                statement.place, table.access, table.table, table.key, table.order
            )
            .unwrap();
        }
        for dark in &statement.dark {
            writeln!(text, "  [{}] dark: {dark}", statement.place).unwrap();
        }
    }
    for table in seen.observed.tables.iter().filter(|table| !table.closed) {
        writeln!(text, "  open: {}", table.name).unwrap();
    }
    text
}

fn describe_statement(seen: &Seen, statement: &ObservedStatement, text: &mut String) {
    let table = |number: u16| seen.observed.tables[usize::from(number)].name.as_str();
    writeln!(text, "  [{}] {} columns", statement.statement, statement.appended).unwrap();
    for rows in &statement.rows {
        let ObservedRows { role, packed, key, version, replaced, columns, .. } = rows;
        let kept: Vec<String> = seen.observed.tables[usize::from(rows.table)]
            .columns
            .iter()
            .zip(columns)
            .map(|(column, place)| format!("{} {place}", column.name))
            .collect();
        let packed = packed.map_or(String::new(), |place| format!(" packed {place}:"));
        let replaced = replaced.map_or(String::new(), |place| format!(" replaced {place}"));
        writeln!(
            text,
            "    {role:?} {}{packed} key {key:?} version {version}{replaced} [{}]",
            table(rows.table),
            kept.join(", ")
        )
        .unwrap();
    }
    if let Some(RowLimit { rows, offset, of }) = &statement.limit {
        let number = |value: &Option<SearchValue>| value.as_ref().map_or("-".to_owned(), describe_value);
        let of = of.map_or(String::new(), |entry| format!(" of rows {entry}"));
        writeln!(text, "    limit {} offset {}{of}", number(rows), number(offset)).unwrap();
    }
    for search in &statement.searches {
        let value = describe_value;
        let of = match (search.rows, search.referred) {
            (Some(rows), _) => format!("of rows {rows}"),
            (None, None) => format!("for {}", table(search.table)),
            (None, Some(Referred { entry, column, each })) => format!(
                "for {} of {} key in column {column} of rows {entry}",
                table(search.table),
                if each { "each" } else { "any" }
            ),
        };
        let when = match search.when {
            SearchWhen::Always => String::new(),
            SearchWhen::Empty => ", if there is none".to_owned(),
            SearchWhen::Nonempty => ", if there is a row".to_owned(),
            SearchWhen::Unlimited => ", if there are fewer than the limit".to_owned(),
            SearchWhen::Limited => ", if there are as many as the limit".to_owned(),
            SearchWhen::Found(entry) => format!(", if rows {entry} show one"),
            SearchWhen::Column(column, truth) => format!(", if column {column} is {truth}"),
        };
        let key = search.key.as_ref().map(|key| key.iter().map(value).collect::<Vec<_>>().join(", "));
        let operands: Vec<String> = search
            .operands
            .iter()
            .map(|operand| format!("{} as {}", value(&operand.value), operand.column))
            .collect();
        let predicate = &seen.observed.predicates[usize::from(search.predicate)];
        writeln!(
            text,
            "    search {of}{when}: key ({}) {predicate:?} [{}]",
            key.unwrap_or_default(),
            operands.join(", ")
        )
        .unwrap();
    }
    if !statement.unseen.is_empty() {
        let unseen: Vec<&str> = statement.unseen.iter().map(|number| table(*number)).collect();
        writeln!(text, "    unseen: {}", unseen.join(", ")).unwrap();
    }
}

fn describe_value(value: &SearchValue) -> String {
    match value {
        SearchValue::Variable(slot) | SearchValue::Uuid(slot) => format!("variable {}", slot.index()),
        SearchValue::Constant(text) => format!("{text:?}"),
        SearchValue::Joined { parts, literal } => {
            let part = |part: &TextPart| match part {
                TextPart::Text(text) => format!("{text:?}"),
                TextPart::Variable(slot) => format!("variable {}", slot.index()),
                TextPart::Parameter(number) => format!("${number}"),
            };
            let parts = parts.iter().map(part).collect::<Vec<_>>().join(" || ");
            if *literal { format!("literal {parts}") } else { parts }
        }
        SearchValue::Moved(value, by) => format!("{} moved by {by}", describe_value(value)),
        SearchValue::Scaled(value, scale) => {
            format!("{} with {scale} digits after the point", describe_value(value))
        }
        SearchValue::Null => "NULL".to_owned(),
        SearchValue::Parameter(number) => format!("${number}"),
        SearchValue::Last => "that of the last row".to_owned(),
        SearchValue::Shown { entry, column } => format!("column {column} of rows {entry}"),
        SearchValue::Elements(array) => format!("elements of {}", describe_value(array)),
    }
}
