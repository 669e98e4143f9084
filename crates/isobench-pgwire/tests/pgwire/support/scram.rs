//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), with fixed salt and nonce.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac};

const SALT: &[u8] = b"0123456789abcdef";
const ITERATIONS: u32 = 4096;
const SERVER_NONCE: &str = "SERVERNONCE";

fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data);
    tag.as_ref().try_into().expect("32 bytes")
}

fn xor(a: [u8; 32], b: &[u8]) -> [u8; 32] {
    let mut result = a;
    for (byte, other) in result.iter_mut().zip(b) {
        *byte ^= other;
    }
    result
}

/// A SCRAM exchange.
pub struct Exchange {
    salted_password: [u8; 32],
    client_first_bare: String,
    server_first: String,
}

impl Exchange {
    /// Processes the client's first message. Returns the exchange, the client's nonce, and the
    /// server's first message.
    pub fn begin(password: &str, client_first: &[u8]) -> (Self, String, String) {
        let client_first = std::str::from_utf8(client_first).expect("ASCII");
        let bare = client_first.strip_prefix("n,,").expect("no channel binding").to_owned();
        let nonce = bare.split(',').find_map(|part| part.strip_prefix("r=")).expect("a nonce").to_owned();
        let server_first = format!("r={nonce}{SERVER_NONCE},s={},i={ITERATIONS}", BASE64.encode(SALT));
        let mut block = hmac(password.as_bytes(), &[SALT, &[0, 0, 0, 1]].concat());
        let mut salted_password = block;
        for _ in 1..ITERATIONS {
            block = hmac(password.as_bytes(), &block);
            salted_password = xor(salted_password, &block);
        }
        let exchange = Self { salted_password, client_first_bare: bare, server_first: server_first.clone() };
        (exchange, nonce, server_first)
    }

    /// Processes the client's final message. Returns its proof and, if it is valid, the server's
    /// final message.
    pub fn finish(&self, client_final: &[u8]) -> (String, Option<String>) {
        let client_final = std::str::from_utf8(client_final).expect("ASCII");
        let (without_proof, proof) = client_final.split_once(",p=").expect("a proof");
        let auth = format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        let client_key = hmac(&self.salted_password, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, &client_key);
        let signature = hmac(stored_key.as_ref(), auth.as_bytes());
        let sent = BASE64.decode(proof).expect("base64");
        let is_right = xor(signature, &sent) == client_key;
        let server_key = hmac(&self.salted_password, b"Server Key");
        let answer = is_right.then(|| format!("v={}", BASE64.encode(hmac(&server_key, auth.as_bytes()))));
        (proof.to_owned(), answer)
    }
}
