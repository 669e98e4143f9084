//! Captures, written as a recorder would, and one of a small shop.

use isobench_capture::{
    Answer, Closed, Column, Datum, End, ErrorAnswer, FORMAT, Header, Opened, Record, Source, Statement,
    Writer,
};

/// A capture that is being written.
pub struct Tape {
    writer: Writer<Vec<u8>>,
    /// Microseconds since recording began.
    pub at: u64,
    /// The comment of the statements that follow.
    pub comment: Option<String>,
}

/// A value.
pub fn value(text: &str) -> Option<Datum> {
    Some(Datum::Text(text.to_owned()))
}

/// A row of texts.
pub fn row(values: &[&str]) -> Vec<Option<Datum>> {
    values.iter().map(|text| value(text)).collect()
}

/// A column: its name, the number of its table, its number there, and its type.
pub fn column(name: &str, table: u32, number: i16, type_oid: u32) -> Column {
    Column { name: name.to_owned(), table, number, type_oid }
}

/// The answer of a statement that returns no rows.
pub fn done(tag: &str) -> Answer {
    Answer { tag: Some(tag.to_owned()), ..Answer::default() }
}

/// The answer of a statement that failed.
pub fn failed(code: &str) -> Answer {
    let error = ErrorAnswer { code: code.to_owned(), ..ErrorAnswer::default() };
    Answer { error: Some(error), ..Answer::default() }
}

impl Tape {
    /// Begins at noon of a day.
    ///
    /// # Panics
    /// If there is no memory left.
    pub fn begin(redacted: bool) -> Tape {
        let header = Header {
            isobench_capture: FORMAT,
            isobench: "0.1.0".to_owned(),
            began: "2026-11-25T12:00:00Z".to_owned(),
            source: Source::Protocol,
            redacted,
        };
        let writer = Writer::begin(Vec::new(), &header).expect("memory");
        Tape { writer, at: 0, comment: None }
    }

    /// A session begins, with these options.
    pub fn open(&mut self, session: u64, options: &str) {
        let parameters = [("options".to_owned(), options.to_owned())].into();
        self.record(&Record::Opened(Opened { session, at: self.at, parameters, ..Opened::default() }));
    }

    /// A session ends.
    pub fn close(&mut self, session: u64) {
        self.record(&Record::Closed(Closed { session, at: self.at, why: None }));
    }

    fn record(&mut self, record: &Record) {
        self.at += 100;
        self.writer.record(record).expect("memory");
    }

    /// Time passes, in microseconds.
    pub fn pass(&mut self, time: u64) {
        self.at += time;
    }

    /// The answer of a statement that returns rows.
    ///
    /// # Panics
    /// If there is no memory left.
    pub fn rows(&mut self, columns: &[Column], rows: Vec<Vec<Option<Datum>>>) -> Answer {
        let number = self.writer.columns(columns).expect("memory");
        let tag = Some(format!("SELECT {}", rows.len()));
        Answer { columns: Some(number), rows: rows.len() as u64, values: rows, tag, error: None }
    }

    /// A statement is sent, and answered.
    ///
    /// # Panics
    /// If there is no memory left.
    pub fn send(
        &mut self,
        session: u64,
        sql: &str,
        parameters: Vec<Option<Datum>>,
        answers: Vec<Answer>,
        status: char,
    ) {
        let text = self.writer.text(sql).expect("memory");
        let status = Some(status);
        let (at, comment) = (self.at, self.comment.clone());
        let statement = Statement {
            session,
            at,
            took: 50,
            text,
            comment,
            parameters,
            answers,
            status,
            ..Statement::default()
        };
        self.record(&Record::Statement(statement));
    }

    /// A statement of a block without rows or parameters.
    pub fn simple(&mut self, session: u64, sql: &str, tag: &str) {
        let status = if tag == "COMMIT" || tag == "ROLLBACK" { 'I' } else { 'T' };
        self.send(session, sql, Vec::new(), vec![done(tag)], status);
    }

    /// Ends in order.
    pub fn end(mut self) -> Vec<u8> {
        self.record(&Record::Ended(End::default()));
        self.into_bytes()
    }

    /// Breaks off.
    pub fn into_bytes(self) -> Vec<u8> {
        self.writer.into_inner()
    }
}

/// SQL that makes the tables of [`shop`].
pub const SHOP: &str = "CREATE TABLE offer (id integer PRIMARY KEY, name text NOT NULL, num_orders integer NOT NULL, \
    total numeric(12,2) NOT NULL, ends timestamptz);\n\
    CREATE TABLE stock (id integer PRIMARY KEY, allocated integer NOT NULL);\n\
    CREATE TABLE orders (id serial PRIMARY KEY, number text UNIQUE NOT NULL, customer_id integer NOT NULL, \
    placed timestamptz NOT NULL);\n\
    CREATE TABLE line (id serial PRIMARY KEY, order_id integer NOT NULL, stock_id integer NOT NULL);\n\
    INSERT INTO offer SELECT g, 'offer ' || g, 0, 0, NULL FROM generate_series(1, 3) g;\n\
    INSERT INTO stock SELECT g, 0 FROM generate_series(1, 20) g;\n";

/// A shop: each order reads an offer, makes an order of two lines, and saves the offer as a whole, as
/// object-relational mappers do, with one order more. Between orders, products are looked at.
pub fn shop(orders: u32) -> Vec<u8> {
    let mut tape = Tape::begin(false);
    tape.open(1, "");
    tape.send(1, "SELECT set_config('TimeZone', 'UTC', false)", Vec::new(), vec![done("SELECT 1")], 'I');
    let mut offers = [(0_u32, 0_u32); 3];
    for order in 0..orders {
        let list: Vec<String> = (0..=order % 3).map(|more| (1 + (order + more) % 20).to_string()).collect();
        let looked = format!("SELECT id, allocated FROM stock WHERE id IN ({})", list.join(", "));
        let columns = [column("id", 11, 1, 23), column("allocated", 11, 2, 23)];
        let rows = list.iter().map(|id| row(&[id, "0"])).collect();
        let answer = tape.rows(&columns, rows);
        tape.send(1, &looked, Vec::new(), vec![answer], 'I');
        place_order(&mut tape, order, &mut offers);
    }
    tape.close(1);
    tape.end()
}

fn place_order(tape: &mut Tape, order: u32, offers: &mut [(u32, u32); 3]) {
    let index = order as usize % 3;
    let (offer, number) = (index + 1, 100_020 + order);
    let (count, total) = offers[index];
    let discount = 100 * (1 + order % 7) + 50;
    tape.simple(1, "BEGIN", "BEGIN");
    let columns = [
        column("id", 10, 1, 23),
        column("name", 10, 2, 25),
        column("num_orders", 10, 3, 23),
        column("total", 10, 4, 1700),
        column("ends", 10, 5, 1184),
    ];
    let money = |cents: u32| format!("{}.{:02}", cents / 100, cents % 100);
    let mut read = row(&[&offer.to_string(), &format!("offer {offer}"), &count.to_string(), &money(total)]);
    read.push(None);
    let answer = tape.rows(&columns, vec![read]);
    let select = format!(
        "SELECT \"offer\".\"id\", \"offer\".\"name\", \"offer\".\"num_orders\", \"offer\".\"total\", \"offer\".\"ends\" \
         FROM \"offer\" WHERE \"offer\".\"id\" = {offer} LIMIT 21"
    );
    tape.send(1, &select, Vec::new(), vec![answer], 'T');
    let time = format!("2026-11-25T12:00:{:02}.{:06}+00:00", tape.at / 1_000_000, tape.at % 1_000_000);
    let insert = format!(
        "INSERT INTO \"orders\" (\"number\", \"customer_id\", \"placed\") VALUES ('{number}', {}, \
         '{time}'::timestamptz) RETURNING \"orders\".\"id\"",
        1 + order % 5
    );
    let id = (order + 1).to_string();
    let answer = tape.rows(&[column("id", 12, 1, 23)], vec![row(&[&id])]);
    tape.send(1, &insert, Vec::new(), vec![answer], 'T');
    for line in 0..2 {
        let stock = 1 + (order * 3 + line) % 20;
        tape.simple(
            1,
            &format!("INSERT INTO \"line\" (\"order_id\", \"stock_id\") VALUES ({id}, {stock})"),
            "INSERT 0 1",
        );
        let update = format!(
            "UPDATE \"stock\" SET \"allocated\" = (\"stock\".\"allocated\" + 1) WHERE \"stock\".\"id\" = {stock}"
        );
        tape.simple(1, &update, "UPDATE 1");
    }
    offers[index] = (count + 1, total + discount);
    let update = format!(
        "UPDATE \"offer\" SET \"name\" = 'offer {offer}', \"num_orders\" = {}, \"total\" = '{}', \"ends\" = NULL WHERE \
         \"offer\".\"id\" = {offer}",
        count + 1,
        money(total + discount)
    );
    tape.simple(1, &update, "UPDATE 1");
    tape.simple(1, &format!("SELECT pg_notify('sold', '{}')", money(discount)), "SELECT 1");
    tape.simple(1, "COMMIT", "COMMIT");
}

/// SQL that makes the tables of [`baskets`] as 8 orders have left them.
pub const BASKETS: &str = "CREATE TABLE customer (id integer PRIMARY KEY);\n\
    CREATE TABLE basket (id integer PRIMARY KEY, owner_id integer NOT NULL REFERENCES customer, status text NOT NULL);\n\
    CREATE TABLE purchase (id serial PRIMARY KEY, basket_id integer UNIQUE NOT NULL REFERENCES basket, \
    customer_id integer NOT NULL REFERENCES customer);\n\
    INSERT INTO customer SELECT g FROM generate_series(1, 8) g;\n\
    INSERT INTO basket SELECT g + 20, g, 'closed' FROM generate_series(1, 8) g;\n\
    INSERT INTO purchase (basket_id, customer_id) SELECT g + 20, g FROM generate_series(1, 8) g;\n";

/// Orders that use up what they find: each looks for the open basket of a customer, and closes it.
pub fn baskets(orders: u32) -> Vec<u8> {
    let mut tape = Tape::begin(false);
    tape.open(1, "");
    for customer in 1..=orders {
        let basket = (customer + 20).to_string();
        tape.simple(1, "BEGIN", "BEGIN");
        let columns = [column("id", 10, 1, 23), column("owner_id", 10, 2, 23), column("status", 10, 3, 25)];
        let answer = tape.rows(&columns, vec![row(&[&basket, &customer.to_string(), "open"])]);
        let select = format!(
            "SELECT id, owner_id, status FROM basket WHERE owner_id = {customer} AND status = 'open'"
        );
        tape.send(1, &select, Vec::new(), vec![answer], 'T');
        let answer = tape.rows(&[column("id", 11, 1, 23)], vec![row(&[&customer.to_string()])]);
        let insert = format!(
            "INSERT INTO purchase (basket_id, customer_id) VALUES ({basket}, {customer}) RETURNING purchase.id"
        );
        tape.send(1, &insert, Vec::new(), vec![answer], 'T');
        tape.simple(1, &format!("UPDATE basket SET status = 'closed' WHERE id = {basket}"), "UPDATE 1");
        tape.simple(1, "COMMIT", "COMMIT");
    }
    tape.close(1);
    tape.end()
}
