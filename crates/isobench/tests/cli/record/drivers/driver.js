// What an application does, by node-postgres. Prints what the driver returned.
const { Client } = require('pg');

async function main() {
  const client = new Client();
  await client.connect();
  const insert = 'INSERT INTO item (id, name, price) VALUES ($1, $2, $3)';
  console.log((await client.query(insert, [7, "Ada's", '12.50'])).rowCount);
  const find = { name: 'find', text: 'SELECT id, name, price FROM item WHERE id = $1 AND name = $2' };
  for (let i = 0; i < 2; i++) console.log((await client.query({ ...find, values: [7, "Ada's"] })).rows);
  await client.query('BEGIN');
  console.log((await client.query('UPDATE item SET price = price + $1', [1])).rowCount);
  await client.query('ROLLBACK');
  try {
    await client.query(insert, [7, "Ada's", '12.50']);
  } catch (error) {
    console.log(error.code);
  }
  await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
  console.log((await client.query('SELECT price FROM item')).rows);
  await client.query('COMMIT');
  await client.end();
}

main();
