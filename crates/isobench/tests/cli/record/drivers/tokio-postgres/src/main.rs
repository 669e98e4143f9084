//! What an application does, by tokio-postgres. Prints what the driver returned.

use std::env;
use std::error::Error;
use std::pin::pin;

use futures_util::SinkExt as _;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, IsolationLevel, NoTls};

const INSERT: &str = "INSERT INTO item (id, name, ok, weight, raw) VALUES ($1, $2, $3, $4, $5)";
const FIND: &str = "SELECT id, name, ok, weight, raw FROM item WHERE id = $1 AND name = $2";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = Config::new();
    config.host(env::var("PGHOST")?).port(env::var("PGPORT")?.parse()?).dbname(env::var("PGDATABASE")?);
    config.user(env::var("PGUSER")?).password(env::var("PGPASSWORD")?);
    let (mut client, connection) = config.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    let raw: &[u8] = &[0, 255];
    println!("{}", client.execute(INSERT, &[&7, &"Ada's", &true, &1.5, &raw]).await?);
    let find = client.prepare(FIND).await?;
    // Three at once: their messages are sent without waiting for results.
    let values: [&(dyn ToSql + Sync); 2] = [&7, &"Ada's"];
    let found = tokio::try_join!(
        client.query_one(&find, &values),
        client.query_one(&find, &values),
        client.query_one(&find, &values),
    )?;
    for row in [found.0, found.1, found.2] {
        let (id, name, ok): (i32, &str, bool) = (row.get(0), row.get(1), row.get(2));
        println!("{id} {name} {ok} {} {:?}", row.get::<_, f64>(3), row.get::<_, &[u8]>(4));
    }
    let transaction = client.transaction().await?;
    println!("{}", transaction.execute("UPDATE item SET weight = weight + $1", &[&1.0]).await?);
    transaction.rollback().await?;
    let duplicate = client.execute(INSERT, &[&7, &"Ada's", &true, &1.5, &raw]).await;
    println!(
        "{}",
        duplicate.err().as_ref().and_then(|error| error.code()).ok_or("no error of the server")?.code()
    );
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::Serializable).start().await?;
    println!("{}", transaction.query_one("SELECT weight FROM item", &[]).await?.get::<_, f64>(0));
    // Parts of a result.
    let portal = transaction.bind("SELECT n FROM generate_series(1, 120) n", &[]).await?;
    let mut sum = 0;
    loop {
        let rows = transaction.query_portal(&portal, 50).await?;
        sum += rows.iter().map(|row| row.get::<_, i32>(0)).sum::<i32>();
        if rows.len() < 50 {
            break;
        }
    }
    println!("{sum}");
    transaction.commit().await?;
    let mut rows = pin!(client.copy_in("COPY copied FROM STDIN").await?);
    rows.send(&b"1\ta\n2\tb\n"[..]).await?;
    println!("{}", rows.finish().await?);
    println!("{:?}", client.simple_query("SELECT name FROM copied ORDER BY id").await?);
    drop(client);
    connection.await??;
    Ok(())
}
