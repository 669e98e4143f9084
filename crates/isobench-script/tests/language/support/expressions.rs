//! A generator of expressions that parse; many of them evaluate, and some fail.

use proptest::prelude::*;

/// Variables that the expressions use.
pub const SETUP: &str = "\\set i 7\n\\set j -3\n\\set d 2.5\n\\set t true\n\\set f false\n\\set n null\n\
                         \\set big 9223372036854775807\n";

/// Expressions of all types.
pub fn expression() -> BoxedStrategy<String> {
    prop_oneof![3 => number(), 1 => boolean(), 1 => anything()].boxed()
}

fn leaf() -> BoxedStrategy<String> {
    prop_oneof![
        4 => (0_i64..20).prop_map(|value| value.to_string()),
        1 => any::<u32>().prop_map(|value| value.to_string()),
        1 => (0_i64..=i64::MAX).prop_map(|value| value.to_string()),
        1 => Just("-9223372036854775808".to_owned()),
        2 => (0.0_f64..100.0).prop_map(|value| format!("{value:?}")),
        1 => (-300_i32..300).prop_map(|exponent| format!("1.7e{exponent}")),
        3 => prop::sample::select(vec![":i", ":j", ":d", ":big"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![":n", "NULL"]).prop_map(str::to_owned),
    ]
    .boxed()
}

/// Expressions that are numbers (or `NULL`).
fn number() -> BoxedStrategy<String> {
    leaf()
        .prop_recursive(4, 24, 3, |inner| {
            let arithmetic = prop::sample::select(vec!["+", "-", "*", "/", "%", "|", "#", "&", "<<", ">>"]);
            let unary = prop::sample::select(vec!["- ", "~ ", "+ "]);
            let one = prop::sample::select(vec![
                "abs", "int", "double", "exp", "ln", "sqrt", "debug", "hash", "hash_fnv1a", "hash_murmur2", "greatest",
            ]);
            let two = prop::sample::select(vec![
                "mod", "pow", "power", "random", "hash", "hash_fnv1a", "permute", "least", "greatest",
            ]);
            let three =
                prop::sample::select(vec!["permute", "least", "greatest"]);
            let skewed = prop::sample::select(vec!["random_exponential", "random_gaussian", "random_zipfian"]);
            prop_oneof![
                4 => (inner.clone(), arithmetic, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
                1 => inner.clone().prop_map(|a| format!("({a})")),
                1 => (unary, inner.clone()).prop_map(|(op, a)| format!("{op}{a}")),
                2 => (one, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
                2 => (two, inner.clone(), inner.clone()).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
                1 => (three, inner.clone(), inner.clone(), inner.clone())
                    .prop_map(|(name, a, b, c)| format!("{name}({a}, {b}, {c})")),
                2 => (0_i64..50, 0_i64..100_000).prop_map(|(a, width)| format!("random({a}, {})", a + width)),
                1 => (1_i64..1000, 0_i64..1000, 0_i64..99)
                    .prop_map(|(size, value, seed)| format!("permute({value}, {size}, {seed})")),
                2 => (skewed, 0_i64..50, 0_i64..100_000, 1.5_f64..20.0)
                    .prop_map(|(name, a, width, parameter)| format!("{name}({a}, {}, {parameter:?})", a + width)),
                1 => (boolean_of(inner.clone()), inner.clone(), inner)
                    .prop_map(|(c, a, b)| format!("CASE WHEN {c} THEN {a} ELSE {b} END")),
            ]
        })
        .boxed()
}

fn boolean() -> BoxedStrategy<String> {
    boolean_of(number())
}

/// Conditions over numbers.
fn boolean_of(numbers: impl Strategy<Value = String> + Clone + 'static) -> BoxedStrategy<String> {
    let comparison = prop::sample::select(vec!["=", "<>", "!=", "<", "<=", ">", ">="]);
    let test =
        prop::sample::select(vec!["IS NULL", "IS NOT NULL", "ISNULL", "NOTNULL", "IS TRUE", "IS NOT FALSE"]);
    let constant = prop::sample::select(vec!["true", "FALSE", ":t", ":f", ":n"]).prop_map(str::to_owned);
    prop_oneof![
        3 => (numbers.clone(), comparison, numbers.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (numbers, test).prop_map(|(a, test)| format!("{a} {test}")),
        1 => constant,
    ]
    .prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["AND", "or"]), inner.clone())
                .prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            inner.clone().prop_map(|a| format!("NOT {a}")),
            inner.prop_map(|a| format!("({a})")),
        ]
    })
    .boxed()
}

/// Expressions of mixed types, most of which fail.
fn anything() -> BoxedStrategy<String> {
    let operator = prop::sample::select(vec!["+", "=", "AND", "OR", "<", "|", "/"]);
    (prop_oneof![number(), boolean()], operator, prop_oneof![number(), boolean()])
        .prop_map(|(a, op, b)| format!("({a}) {op} ({b})"))
        .boxed()
}
