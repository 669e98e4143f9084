//! `-i`: makes the tables.

use isobench_database::{InitOptions, detect, init};
use isobench_pgwire::process_environment;

use crate::console::{Console, Message};
use crate::options::Common;
use crate::setup::Login;

/// Makes the tables and returns the exit status.
pub fn initialize(common: &Common, tables: &InitOptions, console: Console) -> u8 {
    let made = Login::new(&common.connection, &process_environment).and_then(|mut login| {
        let mut connection = login.first()?;
        let database = detect(&mut connection).map_err(|error| error.to_string())?;
        let mut show = |progress| console.say(&Message::plain(progress));
        init(&mut connection, &database, tables, &mut show).map_err(|error| error.to_string())
    });
    match made {
        Ok(timings) => {
            console.say(&Message::plain(timings.summary()));
            0
        }
        Err(why) => {
            console.error(why);
            1
        }
    }
}
