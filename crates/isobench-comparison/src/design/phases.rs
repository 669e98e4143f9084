//! From a plan to what is measured: the servers are chosen, the settings placed in them or in
//! sessions, and what a server can't do is left out. Each step is a type of its own, so that none is
//! forgotten, and the outcome doesn't change any more.
//!
//! Not here: what can be checked before (`resolve.rs`).

use isobench_database::Database;
use isobench_isolation::{Allocation, Level};
use isobench_plan::Setting;
use isobench_result::factor::{ENDPOINT, SERVER_BIN, SERVER_VERSION, SETTING};

use super::Design;
use super::faults::{self, Standbys};
use super::resolve::Resolved;
use super::standby::{no_serializable, refusal};
use super::values::wrong;
use super::vary::KnownSettings;
use super::work::Work;
use crate::failure::Outcome;
use crate::tables::Tables;
use crate::workload::Sources;

/// Which servers the options choose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice {
    /// A server is named.
    pub named: bool,
    /// The programs of the embedded server are chosen.
    pub programs: bool,
    /// The standby of a named server is named, too.
    pub standby: bool,
}

/// A hot standby, on which nothing can be made.
pub struct HotStandby<'a> {
    /// What it is called.
    pub place: String,
    /// Returns the scale of the tables there.
    pub scale: &'a dyn Fn() -> Outcome<u32>,
}

/// A plan whose servers are chosen.
#[derive(Debug, Clone)]
pub struct Chosen(Resolved);

/// A plan whose settings are placed.
#[derive(Debug, Clone)]
pub struct Placed(Resolved);

impl Resolved {
    /// The design as far as it is known.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Adapts the plan to a choice of servers: options override the plan's file. Also returns a
    /// description of what was dropped.
    ///
    /// # Errors
    /// The user asked for versions of the embedded server as well as for another server, or for
    /// tables of the user's, which an embedded server doesn't have.
    pub fn on(mut self, choice: Choice) -> Outcome<(Chosen, Vec<String>)> {
        let design = &mut self.design;
        let mut notes = Vec::new();
        if choice.named {
            faults::for_embedded(&design.plan, choice.standby)?;
            design.server_factors.standbys = Standbys::default();
            design.servers = design.server_factors.servers();
        }
        if choice.standby && design.plan.readers() == 0 {
            return Err(wrong(
                "standby-server",
                "needs --readers NUM, the number of clients that read there",
            ));
        }
        if design.schema().is_some() && !choice.named {
            return Err(wrong(
                "schema",
                "names tables of yours, but no server is named that has them, and the embedded one is empty; name it \
                 (-h, -p, -d), or use --setup FILE.sql",
            ));
        }
        endpoints_fit(design, choice)?;
        let factors = &mut design.server_factors;
        let programs = !factors.versions.is_empty() || !factors.bins.is_empty();
        if programs && (choice.named || choice.programs) {
            let why = if choice.named {
                "a server is named"
            } else {
                "--server-version or --server-bin chooses another one"
            };
            if self.typed.vary.is_some() {
                return Err(wrong(
                    "vary",
                    format!(
                        "{SERVER_VERSION} and {SERVER_BIN} are for the embedded server, but {why}; leave out one or \
                         the other"
                    ),
                ));
            }
            (factors.versions, factors.bins) = (Vec::new(), Vec::new());
            design.servers = factors.servers();
            if let Some(vary) = &mut design.plan.vary {
                vary.retain(|one| one.name != SERVER_VERSION && one.name != SERVER_BIN);
            }
            notes.push(format!("the plan's versions of the embedded server are left out, because {why}"));
        }
        let settings = design.plan.server_settings.take_if(|settings| choice.named && !settings.is_empty());
        if let Some(settings) = settings {
            let settings: Vec<String> = settings.iter().map(Setting::to_string).collect();
            notes.push(format!(
                "the plan's settings of the embedded server ({}) are left out, because a server is named; set them \
                 there if they matter",
                settings.join(", ")
            ));
        }
        Ok((Chosen(self), notes))
    }

    /// Drops strategies from the plan's file that this server doesn't support. Returns a
    /// description of each, with the reason.
    ///
    /// # Errors
    /// The user asked for one of them, or none is left.
    pub(super) fn keep_supported(&mut self, database: &Database) -> Outcome<Vec<String>> {
        let own_durability = database.product.abilities.synchronous_commit.missing(database);
        if let Some(why) = own_durability.filter(|_| self.design.has_faults()) {
            return Err(wrong("fault", format!("{}: {why}", database.product.name)));
        }
        let mut left_out = Vec::new();
        let refused = |work: &Work| work.refusal(database);
        for refusal in self.design.works.iter().filter_map(refused) {
            if !left_out.contains(&refusal) {
                left_out.push(refusal);
            }
        }
        self.design.works.retain(|work| refused(work).is_none());
        if !left_out.is_empty() && (self.typed.strategies.is_some() || self.design.works.is_empty()) {
            return Err(wrong("strategies", left_out.join("; ")));
        }
        Ok(left_out.into_iter().map(|refusal| format!("left out: {refusal}")).collect())
    }

    /// Adapts the plan to a hot standby. `scale` returns the scale of the existing tables. Returns
    /// a description of what was dropped.
    ///
    /// # Errors
    /// Part of the plan writes, needs new tables, or is measured at serializable only.
    pub(super) fn only_read(
        &mut self,
        place: &str,
        scale: impl FnOnce() -> Outcome<u32>,
    ) -> Outcome<Vec<String>> {
        let design = &mut self.design;
        if design.schema().is_some() {
            return Err(refusal(place, "--schema is for scripts that write"));
        }
        if design.has_faults() {
            return Err(refusal(place, "with --fault every transaction leaves a row"));
        }
        for work in &design.works {
            if let Some(why) = work.writing() {
                return Err(refusal(place, &why));
            }
        }
        if !design.conditions.is_empty() {
            return Err(wrong(
                "invariant",
                format!(
                    "{place} is a hot standby, on which nothing is written, so no run can break it; leave it out"
                ),
            ));
        }
        let mut notes = Vec::new();
        let serializable = |allocation: &Allocation| allocation.range().1 == Level::Serializable;
        if design.plan.allocations().iter().any(serializable) {
            return Err(wrong("allocation", no_serializable(Level::Serializable)));
        }
        if design.plan.levels().contains(&Level::Serializable) {
            let why = no_serializable(Level::Serializable);
            if self.typed.levels.is_some() || design.plan.levels() == [Level::Serializable] {
                return Err(wrong("levels", why));
            }
            if let Some(levels) = &mut design.plan.levels {
                levels.retain(|level| *level != Level::Serializable);
            }
            notes.push(format!("left out: {why}"));
        }
        if design.workloads.iter().any(Sources::has_builtin) {
            design.plan.scale = Some(scale()?);
        }
        for work in &mut design.works {
            work.tables = Tables::Found;
            work.scale = design.plan.scale();
        }
        Ok(notes)
    }
}

/// Refuses endpoints where they lead to nothing, or to something else than the cell's server.
fn endpoints_fit(design: &Design, choice: Choice) -> Outcome {
    let why = match () {
        () if design.server_factors.endpoints.is_empty() => return Ok(()),
        () if !choice.named => {
            "a pooler leads to a server that was there before, but isobench starts the embedded one; name the server \
             (-h, -p, -d)"
        }
        () if design.plan.readers() > 0 => {
            "clients that read on a standby (--readers) reach it directly; leave out one"
        }
        () if design.has_faults() => {
            "what happens to the server (--fault) happens to embedded ones; leave out one"
        }
        () => return Ok(()),
    };
    Err(wrong("vary", format!("{ENDPOINT}: {why}")))
}

impl Chosen {
    /// The design as far as it is known.
    pub fn design(&self) -> &Design {
        &self.0.design
    }

    /// Decides which of the settings are the servers' own, and which the sessions', now that one of the
    /// servers is known.
    ///
    /// # Errors
    /// A setting is unknown, can't be changed there, or has a value that the server refuses; or it is
    /// one of all servers' settings, too.
    pub fn place(
        mut self,
        known: &dyn KnownSettings,
        embedded: Option<&[Setting]>,
        alters: bool,
    ) -> Outcome<Placed> {
        let design = &mut self.0.design;
        let twice = |setting: &&Setting| {
            design.server_factors.settings.iter().any(|one| one.name.eq_ignore_ascii_case(&setting.name))
        };
        if let Some(setting) = embedded.unwrap_or_default().iter().find(twice) {
            return Err(wrong(
                "vary",
                format!(
                    "{SETTING}{0}: all servers have {0}={1} already; leave out one of them",
                    setting.name, setting.value
                ),
            ));
        }
        (design.servers, design.sessions, design.altered) =
            design.server_factors.place(known, embedded.is_some(), alters)?;
        if alters && design.has_faults() {
            return Err(wrong(
                "alter-system",
                "settings of a server that is taken away (--fault) couldn't be put back there; leave out one of them",
            ));
        }
        if alters && !design.alters() {
            return Err(wrong(
                "alter-system",
                "no setting is varied that needs it: --vary setting:NAME=… of a whole server, on a named one",
            ));
        }
        Ok(Placed(self.0))
    }
}

impl Placed {
    /// The design as far as it is known.
    pub fn design(&self) -> &Design {
        &self.0.design
    }

    /// True if servers are to be started with settings.
    pub fn has_server_settings(&self) -> bool {
        self.0.design.servers.iter().any(|server| !server.settings.is_empty())
    }

    /// Leaves out what the servers can't do: strategies, and on a hot standby what writes. Also
    /// returns a description of what was dropped.
    ///
    /// # Errors
    /// The user asked for it, or nothing is left.
    pub fn fit(self, database: &Database, standby: Option<HotStandby<'_>>) -> Outcome<(Design, Vec<String>)> {
        let Placed(mut resolved) = self;
        let mut notes = resolved.keep_supported(database)?;
        if let Some(HotStandby { place, scale }) = standby {
            notes.extend(resolved.only_read(&place, scale)?);
        }
        Ok((resolved.design, notes))
    }
}
