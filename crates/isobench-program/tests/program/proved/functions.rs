//! Statements of random scripts in bodies of functions, where they do the same.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::dice::Dice;
use super::schema::{Schema, Table};
use super::scripts::{Command, Script, Store};

/// Puts some of the statements that write into functions, which the schema has then. Returns their number.
pub fn put_into_functions(scripts: &mut [Script], schema: &mut Schema, dice: &mut Dice) -> usize {
    let mut count = 0;
    for command in scripts.iter_mut().flat_map(|script| &mut script.0) {
        let Command::Sql(text, Store::Client) = command else { continue };
        let writes = ["DELETE", "INSERT", "UPDATE"].iter().any(|verb| text.starts_with(verb));
        if !writes || dice.chance(30) {
            continue;
        }
        count += 1;
        let (body, variables) = with_parameters(text);
        let parameters: Vec<String> = variables.iter().map(|name| format!("p_{name} bigint")).collect();
        let (language, body) = match dice.below(3) {
            0 => ("sql", body),
            1 => ("plpgsql", format!("BEGIN {body}; END")),
            _ => (
                "plpgsql",
                format!(
                    "DECLARE n int := 1; BEGIN FOR i IN n..1 LOOP IF i = n THEN {body}; END IF; END LOOP; END"
                ),
            ),
        };
        writeln!(
            schema.setup,
            ";\nCREATE FUNCTION code_{count}({}) RETURNS void LANGUAGE {language} AS $code$ {body} $code$;",
            parameters.join(", ")
        )
        .unwrap();
        let given: Vec<String> = variables.iter().map(|name| format!(":{name}")).collect();
        *text = format!("SELECT code_{count}({})", given.join(", "));
    }
    count
}

/// Lets each changed row of a table change one of another table by what it was before, if there are two such tables.
pub fn add_trigger(schema: &mut Schema, dice: &mut Dice) -> bool {
    let fits = |table: &&Table| table.key == ["k"] && table.stored.len() == 1;
    let names: Vec<String> = schema.tables.iter().filter(fits).map(|table| table.name.clone()).collect();
    let [one, other, ..] = names.as_slice() else { return false };
    let (from, to) = if dice.chance(50) { (one, other) } else { (other, one) };
    writeln!(
        schema.setup,
        ";\nCREATE FUNCTION on_{from}() RETURNS trigger LANGUAGE plpgsql AS $code$ BEGIN \
             UPDATE {to} SET v = OLD.w + 1 WHERE k = NEW.k; RETURN NEW; END $code$;\n\
         CREATE TRIGGER code_trigger AFTER UPDATE ON {from} FOR EACH ROW EXECUTE FUNCTION on_{from}();"
    )
    .unwrap();
    true
}

/// A text with parameters in place of variables, and these.
fn with_parameters(text: &str) -> (String, BTreeSet<String>) {
    let (mut found, mut names) = (String::new(), BTreeSet::new());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        found.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end =
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
        if end == 0 {
            // A cast.
            found.push_str("::");
            rest = rest.strip_prefix(':').unwrap_or(rest);
            continue;
        }
        names.insert(rest[..end].to_owned());
        write!(found, "p_{}", &rest[..end]).unwrap();
        rest = &rest[end..];
    }
    found.push_str(rest);
    (found, names)
}
