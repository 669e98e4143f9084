// Races of public applications in TypeScript, rebuilt small, with their fixes (races.txt): PORT=8000 node app.js
const http = require('http');
const { Pool } = require('pg');

const pool = new Pool({ max: 3 });
const refused = (status) => Object.assign(new Error('refused'), { status });

async function transaction(run) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const answer = await run(client);
    await client.query('COMMIT');
    return answer;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

// mattogodoy/nametag #442: endpoints are counted, then one is added; the user's row is locked first.
async function endpoint(client) {
  const { rows: [{ count }] } = await client.query('SELECT count(*)::int FROM endpoints WHERE user_id = 1');
  if (count >= 2) throw refused(409);
  await client.query("INSERT INTO endpoints (user_id, url) VALUES (1, 'b')");
  return 'created';
}

// app-vitals/shipwright #2526: a claim is checked, then written; the check is repeated in the UPDATE.
async function claim(condition) {
  const { rows: [found] } = await pool.query('SELECT claimed_by FROM pull_request WHERE id = 1');
  if (found.claimed_by !== null) throw refused(409);
  const done = await pool.query(`UPDATE pull_request SET claimed_by = gen_random_uuid() WHERE id = 1 ${condition}`);
  if (done.rowCount === 0) throw refused(409);
  return 'claimed';
}

// ossdaiict/SBG-Website #18: conflicts are looked for, then a venue is booked; the venue's row is locked first.
async function book(client) {
  const { rows } = await client.query("SELECT id FROM bookings WHERE venue = 3 AND during && '[10,12)'");
  if (rows.length > 0) throw refused(409);
  await client.query("INSERT INTO bookings (venue, during) VALUES (3, '[10,12)')");
  return 'booked';
}

// lobu-ai/lobu #1286: a current row is looked for, then added; writers of a key come one after another.
async function ingest(client) {
  const { rows } = await client.query("SELECT id FROM events WHERE connection_id = 1 AND origin_id = 'a'");
  if (rows.length > 0) return 'known';
  await client.query("INSERT INTO events (connection_id, origin_id, content) VALUES (1, 'a', 'text')");
  return 'new';
}

const after = (lock, run) => transaction(async (client) => {
  await client.query(lock);
  return run(client);
});

const paths = {
  '/endpoint': () => transaction(endpoint),
  '/endpoint-fixed': () => after('SELECT id FROM users WHERE id = 1 FOR UPDATE', endpoint),
  '/claim': () => claim(''),
  '/claim-fixed': () => claim('AND claimed_by IS NULL'),
  '/book': () => transaction(book),
  '/book-fixed': () => after('SELECT id FROM venues WHERE id = 3 FOR UPDATE', book),
  '/ingest': () => transaction(ingest),
  '/ingest-fixed': () => after("SELECT pg_advisory_xact_lock(hashtext('1 a'))", ingest),
};

http.createServer(async (request, response) => {
  let [status, body] = [200, ''];
  try {
    body = await paths[request.url]();
  } catch (error) {
    [status, body] = [error.status ?? 500, error.message];
  }
  response.writeHead(status);
  response.end(JSON.stringify(body));
}).listen(Number(process.env.PORT), '127.0.0.1');
