//! Which records `ycsb` chooses: the distributions, their order within a transaction, and a hot spot
//! that moves. The script is executed without a server.

use isobench_script::{
    Arrival, CommandKind, EvalContext, Prng, Streams, Symbols, Value, Variables, branch, parse,
};
use isobench_workloads::find;

/// The line that draws a number between 0 and the one before.
const DRAW: &str = "\\set u :u * pow(random(1, 1000000000000000) / 1e15, 1.0 / :left)";

/// A client that executes a workload's only script.
struct Client {
    script: isobench_script::Script,
    symbols: Symbols,
    variables: Variables,
    random: Prng,
}

impl Client {
    /// With `drawn` in place of the drawn number.
    fn new(spec: &str, drawn: Option<&str>) -> Client {
        let chosen = find(spec).unwrap();
        let text = chosen.scripts().remove(0).text;
        assert!(text.contains(DRAW), "{text}");
        let text = drawn.map_or(text.clone(), |drawn| text.replace(DRAW, &format!("\\set u {drawn}")));
        let mut symbols = Symbols::new();
        let script = parse("script", &text, &mut symbols).unwrap();
        for (name, _) in chosen.variables() {
            symbols.intern(&name);
        }
        for name in ["transaction", "number", "grid"] {
            symbols.intern(name);
        }
        let mut client =
            Client { script, variables: Variables::new(&symbols), symbols, random: Streams::new(1).split() };
        for (name, value) in chosen.variables() {
            client.set(&name, value);
        }
        client
    }

    fn set(&mut self, name: &str, value: Value) {
        let slot = self.symbols.lookup(name).unwrap();
        self.variables.set(slot, value);
    }

    /// The numbers of the records of a transaction.
    fn transaction(&mut self, number: i64) -> Vec<i64> {
        self.set("transaction", Value::Int(number));
        let slot = self.symbols.lookup("number").unwrap();
        let (mut at, mut arrival, mut chosen) = (0, Arrival::Next, Vec::new());
        while let Some(command) = self.script.commands.get(at) {
            let mut context = EvalContext {
                variables: &self.variables,
                names: &self.symbols,
                rng: &mut self.random,
                debug: &mut |_| {},
            };
            if let Some(next) = branch(&self.script, at, arrival, &mut context).unwrap() {
                (at, arrival) = next;
                continue;
            }
            match &command.kind {
                CommandKind::Set { slot, expr } => {
                    let value = expr.eval(&mut context).unwrap();
                    self.variables.set(*slot, value);
                }
                CommandKind::Sql(sql) if !sql.annotations.is_empty() => {
                    chosen.push(self.variables.value(slot, &self.symbols).unwrap().as_int().unwrap());
                }
                _ => {}
            }
            (at, arrival) = (at + 1, Arrival::Next);
        }
        chosen
    }
}

/// The frequencies of the records with a grid in place of random numbers.
fn frequencies(parameters: &str, records: usize) -> Vec<f64> {
    const POINTS: u32 = 50_000;
    let spec = format!("ycsb+c:operations=1,records={records},{parameters}");
    let mut client = Client::new(&spec, Some(":grid"));
    let mut found = vec![0.0; records];
    for point in 0..POINTS {
        client.set("grid", Value::Double((f64::from(point) + 0.5) / f64::from(POINTS)));
        let number = usize::try_from(client.transaction(1)[0]).unwrap();
        found[number - 1] += 1.0 / f64::from(POINTS);
    }
    found
}

#[test]
fn popularity_is_zipfian_for_every_constant() {
    for constant in ["0", "0.5", "0.99", "1", "1.2"] {
        let exponent: f64 = constant.parse().unwrap();
        let weight = |rank: usize| f64::from(u32::try_from(rank).unwrap()).powf(-exponent);
        let total: f64 = (1..=100).map(weight).sum();
        let found = frequencies(&format!("zipfian={constant}"), 100);
        for rank in 1..=100 {
            let expected = weight(rank) / total;
            let ratio = found[rank - 1] / expected;
            assert!((0.97..1.03).contains(&ratio), "{constant}: rank {rank}: {ratio}");
        }
    }
}

/// At the ends of the interval, where differences cancel out.
#[test]
fn every_number_has_a_rank() {
    for constant in ["0", "0.99", "0.9999999", "1", "1.0000001", "2", "10"] {
        for records in [1, 7, 10_000_000] {
            let spec = format!("ycsb+c:operations=1,records={records},zipfian={constant}");
            let mut client = Client::new(&spec, Some(":grid"));
            for drawn in [0.0, 1e-15, 0.5, 1.0 - 1e-15, 1.0] {
                client.set("grid", Value::Double(drawn));
                let number = client.transaction(1)[0];
                assert!((1..=records).contains(&number), "{spec}: {drawn}: {number}");
            }
        }
    }
}

#[test]
fn a_hot_spot_receives_its_share() {
    for (parameters, hot, share) in [
        ("hotspot=10", 10, 0.8),
        ("hotspot=25,share=50", 25, 0.5),
        ("hotspot=10,share=0", 10, 0.0),
        ("hotspot=10,share=100", 10, 1.0),
    ] {
        let found = frequencies(parameters, 100);
        let (inside, outside) = found.split_at(hot);
        let sum: f64 = inside.iter().sum();
        assert!((sum - share).abs() < 1e-6, "{parameters}: {sum}");
        for part in [inside, outside] {
            let mean = part.iter().sum::<f64>() / f64::from(u32::try_from(part.len()).unwrap());
            assert!(part.iter().all(|found| (found - mean).abs() < 1e-4), "{parameters}: {part:?}");
        }
    }
}

/// Several operations are drawn as independently as one is, and sorted: the most popular is last.
#[test]
fn records_of_a_transaction_are_in_the_order_of_popularity() {
    let single = frequencies("zipfian=0.99", 100);
    let mut client = Client::new("ycsb+c:operations=4,records=100", None);
    let mut found = [0.0_f64; 100];
    for _ in 0..20_000 {
        let numbers = client.transaction(1);
        assert!(numbers.len() == 4 && numbers.is_sorted_by(|one, next| one >= next), "{numbers:?}");
        for number in numbers {
            found[usize::try_from(number).unwrap() - 1] += 1.0 / 80_000.0;
        }
    }
    for rank in 0..10 {
        let ratio = found[rank] / single[rank];
        assert!((0.9..1.1).contains(&ratio), "rank {}: {ratio}", rank + 1);
    }
}

#[test]
fn the_hot_spot_moves_by_its_own_size() {
    let mut client = Client::new("ycsb+c:records=100,hotspot=10,share=100,moves=3", None);
    for number in 1..=60 {
        let start = (number - 1) / 3 * 10 % 100;
        let chosen = client.transaction(number);
        let inside = |number: &i64| (start + 1..=start + 10).contains(number);
        assert!(chosen.iter().all(inside), "transaction {number}: {chosen:?}, from {start}");
    }
    let mut popular = Client::new("ycsb+c:records=300,operations=1,moves=5", Some("0.000001"));
    assert_eq!([1, 5, 6, 11].map(|number| popular.transaction(number)[0]), [1, 1, 4, 7]);
    let mut still = Client::new("ycsb+c:operations=1", Some("0.000001"));
    assert_eq!([1, 1_000_000].map(|number| still.transaction(number)[0]), [1, 1]);
}

#[test]
fn the_latest_are_the_most_popular() {
    let mut client = Client::new("ycsb+d:inserts=0,operations=1", Some("0.000001"));
    assert_eq!(client.transaction(1), [1000]);
    client.set("inserted", Value::Int(1234));
    client.set("newest", Value::Int(1234));
    assert_eq!(client.transaction(2), [1234]);
    assert_eq!(client.transaction(1), [1000], "a new run starts anew");
}
