//! How frameworks ask for the level of a single transaction.
//!
//! Sources: the manuals of each, as of 2026. Where a framework has nothing, SQL as the first statement
//! of the transaction does (PostgreSQL manual, "SET TRANSACTION").

use isobench_isolation::Level;

/// How a framework asks for a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idiom {
    /// The framework.
    pub framework: &'static str,
    /// The code, with `{}` for the level.
    code: &'static str,
    /// How the level is spelled in it.
    spelling: Spelling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// `REPEATABLE READ`
    Sql,
    /// `REPEATABLE_READ`
    Constant,
    /// `repeatable_read`
    Symbol,
    /// `RepeatableRead`
    Camel,
}

/// The frameworks, SQL first.
pub const IDIOMS: [Idiom; 9] = [
    Idiom { framework: "SQL", code: "BEGIN ISOLATION LEVEL {};", spelling: Spelling::Sql },
    Idiom {
        framework: "Django",
        code: "with transaction.atomic(): cursor.execute('SET TRANSACTION ISOLATION LEVEL {}')",
        spelling: Spelling::Sql,
    },
    Idiom { framework: "Rails", code: "transaction(isolation: :{}) { … }", spelling: Spelling::Symbol },
    Idiom {
        framework: "Spring",
        code: "@Transactional(isolation = Isolation.{})",
        spelling: Spelling::Constant,
    },
    Idiom {
        framework: "SQLAlchemy",
        code: "session.connection(execution_options={\"isolation_level\": \"{}\"})",
        spelling: Spelling::Sql,
    },
    Idiom {
        framework: "Prisma",
        code: "prisma.$transaction(fn, { isolationLevel: Prisma.TransactionIsolationLevel.{} })",
        spelling: Spelling::Camel,
    },
    Idiom {
        framework: "Ecto",
        code: "Repo.transaction(fn -> Repo.query!(\"SET TRANSACTION ISOLATION LEVEL {}\"); … end)",
        spelling: Spelling::Sql,
    },
    Idiom {
        framework: "Go",
        code: "db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.Level{}})",
        spelling: Spelling::Camel,
    },
    Idiom {
        framework: "pgx",
        code: "conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.{}})",
        spelling: Spelling::Camel,
    },
];

impl Idiom {
    /// The code for a level.
    pub fn of(&self, level: Level) -> String {
        let words: Vec<String> = level.to_string().split(' ').map(str::to_owned).collect();
        let spelled = match self.spelling {
            Spelling::Sql => words.join(" ").to_uppercase(),
            Spelling::Constant => words.join("_").to_uppercase(),
            Spelling::Symbol => words.join("_"),
            Spelling::Camel => words
                .iter()
                .map(|word| {
                    let (first, rest) = word.split_at(1);
                    first.to_uppercase() + rest
                })
                .collect(),
        };
        self.code.replacen("{}", &spelled, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_spelled_as_each_framework_does() {
        let of = |name: &str, level| {
            IDIOMS.iter().find(|idiom| idiom.framework == name).map(|idiom| idiom.of(level)).unwrap()
        };
        assert_eq!(of("SQL", Level::RepeatableRead), "BEGIN ISOLATION LEVEL REPEATABLE READ;");
        assert_eq!(of("Rails", Level::RepeatableRead), "transaction(isolation: :repeatable_read) { … }");
        assert_eq!(of("Spring", Level::Serializable), "@Transactional(isolation = Isolation.SERIALIZABLE)");
        assert_eq!(
            of("Go", Level::RepeatableRead),
            "db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})"
        );
    }
}
