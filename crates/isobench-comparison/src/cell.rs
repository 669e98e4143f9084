//! One cell of a comparison in one round: the reset of its tables, and what its measurement is.
//!
//! Not here: the order of its steps (`block.rs`), the measurement itself (`measurement.rs`), and the
//! order of the cells (`comparison.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use isobench_database::Outage;
use isobench_isolation::EffectiveLevel;
use isobench_observation::Dark;
use isobench_observer::{Observer, Part};
use isobench_plan::Observe;
use isobench_result::{Observation, RelationSize, Round};
use isobench_runner::{ClientShare, Control, Job, RunSpec, RunWorkload};
use isobench_sql::Catalog;

use crate::conditions::Conditions;
use crate::design::{CellPlan, Design};
use crate::environment::first_attempt;
use crate::failure::{Failure, Outcome};
use crate::fault::outage;
use crate::judgement::Judging;
use crate::machines::{Machines, Open, RecordedAs};
use crate::measurement::{Faults, Invariants, Measured, Measurement, Others};
use crate::observed::{Recorded, SeenBy, catalog, recorded, recorded_at};
use crate::plans::{AsWritten, Values, compare_plans};
use crate::serving::Entered;
use crate::sessions;
use crate::settlement::{Attested, leave_rows};
use crate::site::Site;
use crate::tables::{Loaded, Ready, Tables};
use crate::target::Target;

/// Interval at which the progress of a cell is shown.
pub const WATCH_EVERY: Duration = Duration::from_millis(100);

/// Measures cells of a design, one at a time.
pub struct CellMeasurer<'a> {
    /// The design.
    pub design: &'a Design,
    /// The servers, in the order of the design's versions.
    pub targets: &'a [Target],
    /// The check of histories; `None` if none is recorded.
    pub judging: Option<&'a Judging>,
    /// Observers of the servers, one each; empty if the servers aren't observed.
    pub observers: &'a [Observer],
    /// Shows text that scripts print with `debug()`.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// The machines that measure together, if there are several.
    pub machines: Option<&'a Machines>,
    /// Requests to stop.
    pub control: &'a Control,
    /// For each server, the place in which cells are measured one at a time, and then the rooms of
    /// those that take turns.
    seats: Vec<Vec<Seat>>,
    /// The servers and works whose tables have been made at least once, so that the time it takes
    /// is known.
    made: BTreeSet<(usize, usize)>,
    /// The same of those that have been written.
    written: BTreeSet<(usize, usize)>,
    /// Tables on which scripts were tried, kept for a sole cell whose setup can't be repeated.
    kept: Option<Prepared>,
    /// What the catalogs say, by server, work and room, whose schema they name; `None` if rows
    /// aren't observed there.
    catalogs: BTreeMap<(usize, usize, usize), Option<Catalog>>,
    /// The size of the tables of each workload on each server, in bytes, and at which scale.
    sizes: BTreeMap<(usize, usize), (u64, u32)>,
    /// Why rows of a work aren't observed, although they could be.
    prevented: BTreeMap<(usize, usize), String>,
    /// The statements of a work, by server, that are sent as written.
    as_written: BTreeMap<(usize, usize), AsWritten>,
    /// The servers, works and settings of sessions for which plans were compared.
    explained: BTreeSet<(usize, usize, usize)>,
    /// The variables of each workload's commands in its trial.
    pub(crate) values: BTreeMap<usize, Values>,
}

/// A place for tables, and those that are loaded there.
struct Seat {
    site: Site,
    loaded: Option<Loaded>,
}

/// A cell whose tables are ready.
#[derive(Debug)]
pub struct Prepared {
    /// Where they are.
    pub site: Site,
    /// The number of that room.
    room: usize,
    /// Their state.
    pub ready: Ready,
}

/// A cell whose tables are ready, and how its transactions are recorded.
pub struct Entrant {
    cell: CellPlan,
    site: Site,
    ready: Ready,
    recorded: Recorded,
    history: Option<PathBuf>,
    attested: Option<Attested>,
}

/// A measured round of a cell.
pub struct MeasuredCell {
    /// The round.
    pub round: Round,
    /// The level that the sessions ran at.
    pub effective: EffectiveLevel,
    /// Notes that concern more than this round.
    pub notes: Vec<String>,
    /// The report on the history, for people.
    pub judgement: Option<String>,
    /// A client lost its connection, so the server may have lost all unsaved state.
    pub lost: bool,
    /// What ended the run because it breaks a promise.
    pub broken: Option<String>,
    /// What was seen of its statements, if their rows are observed or could have been.
    pub observation: Option<Observation>,
}

impl<'a> CellMeasurer<'a> {
    /// Creates a measurer for this design on these servers. `observers` may be empty.
    pub fn new(
        design: &'a Design,
        targets: &'a [Target],
        judging: Option<&'a Judging>,
        observers: &'a [Observer],
        machines: Option<&'a Machines>,
        say: &'a (dyn Fn(&str) + Sync),
        control: &'a Control,
    ) -> CellMeasurer<'a> {
        let seats = targets.iter().map(|target| vec![Seat { site: target.site(), loaded: None }]).collect();
        CellMeasurer {
            design,
            targets,
            judging,
            observers,
            machines,
            say,
            control,
            seats,
            made: BTreeSet::new(),
            written: BTreeSet::new(),
            kept: None,
            catalogs: BTreeMap::new(),
            sizes: BTreeMap::new(),
            prevented: BTreeMap::new(),
            as_written: BTreeMap::new(),
            explained: BTreeSet::new(),
            values: BTreeMap::new(),
        }
    }

    /// Brings the tables of a cell into their starting state, but for a checkpoint: in the place for one
    /// cell at a time, or in a room, by its number from 1.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn prepare(&mut self, cell: &CellPlan, room: usize) -> Outcome<Prepared> {
        if let Some(ready) = self.kept.take() {
            return Ok(ready);
        }
        let prepared = self.make_ready(cell, room)?;
        self.compare_plans(cell, &prepared)?;
        Ok(prepared)
    }

    /// Brings the tables of a cell into their starting state, before plans are compared.
    pub(crate) fn make_ready(&mut self, cell: &CellPlan, room: usize) -> Outcome<Prepared> {
        if self.targets[cell.server].renew(self.say)? {
            let seats = &mut self.seats[cell.server];
            seats.truncate(1);
            for seat in seats {
                seat.loaded = None;
            }
        }
        self.targets[cell.server].alter(&self.design.altered[cell.session], self.say)?;
        let work = &self.design.works[cell.work];
        let builtin = work.sources.writes().is_some();
        let known = !self.made.insert((cell.server, cell.work));
        let Some(seat) = self.seats[cell.server].get_mut(room) else {
            return Err(Failure::setup("there is no room for another cell's tables"));
        };
        self.control.patience().set_limited(known);
        if matches!(work.tables, Tables::Own(_)) {
            self.targets[cell.server].make_anew(&seat.site)?;
        }
        let ready = work.tables.prepare(&seat.site, builtin, &mut seat.loaded);
        self.control.patience().set_limited(true);
        let settings = &self.design.sessions[cell.session];
        let endpoint = self.targets[cell.server].endpoint(cell.endpoint);
        let site = seat.site.with_settings(settings).with_endpoint(endpoint);
        let prepared = Prepared { site, room, ready: ready? };
        self.learn_catalog(cell, &prepared);
        Ok(prepared)
    }

    /// Lets the servers write the tables of cells, whose clients don't work yet: one checkpoint does for
    /// all of a server's, after which every page of theirs is on the disk and was changed by none. A
    /// cell whose server fails is taken out, and `failed` receives its place.
    pub(crate) fn write_tables(
        &mut self,
        entrants: &mut [Option<Entrant>],
        failed: &mut dyn FnMut(usize, Failure),
    ) {
        for server in 0..self.targets.len() {
            let mut works = BTreeSet::new();
            let mut due = Vec::new();
            for (place, entrant) in entrants.iter_mut().enumerate() {
                let Some(cell) = entrant.as_ref().map(|entrant| entrant.cell) else { continue };
                if cell.server == server && self.design.works[cell.work].tables.are_written() {
                    works.insert((server, cell.work));
                    due.push((place, entrant));
                }
            }
            if due.is_empty() {
                continue;
            }
            // How long the first one takes isn't known.
            self.control.patience().set_limited(works.is_subset(&self.written));
            self.written.append(&mut works);
            let written = self.targets[server].site().checkpoint();
            self.control.patience().set_limited(true);
            for (place, entrant) in due {
                match (&written, entrant.as_mut()) {
                    (Ok(notes), Some(entrant)) => entrant.ready.notes.extend(notes.iter().cloned()),
                    (Ok(_), None) => {}
                    (Err(failure), _) => {
                        *entrant = None;
                        failed(place, Failure::setup(failure));
                    }
                }
            }
        }
    }

    /// Makes a room for each of these cells, unless there are enough. Returns false where there
    /// can't be any. Cells that make no tables need none.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn make_rooms_for(&mut self, cells: &[CellPlan]) -> Outcome<bool> {
        let found = |cell: &&CellPlan| !matches!(self.design.works[cell.work].tables, Tables::Found);
        let mut wanted = vec![0; self.targets.len()];
        cells.iter().filter(found).for_each(|cell| wanted[cell.server] += 1);
        for (server, wanted) in wanted.into_iter().enumerate() {
            while self.seats[server].len() <= wanted {
                match self.targets[server].room()? {
                    Some(site) => self.seats[server].push(Seat { site, loaded: None }),
                    None if wanted == 0 => break,
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// Sizes of the tables and indexes of a cell; empty if unknown.
    pub fn relations(&self, cell: &CellPlan) -> Vec<RelationSize> {
        let sizes = self.seats[cell.server].iter().rev().map(|seat| seat.site.relations());
        sizes.into_iter().find(|sizes| !sizes.is_empty()).unwrap_or_default()
    }

    /// Notes the size of a cell's tables, which are there in their starting state.
    pub(crate) fn note_size(&mut self, cell: &CellPlan, site: &Site) {
        if self.design.slice.is_zero() || self.design.time().is_none() {
            // It isn't needed.
            return;
        }
        let work = &self.design.works[cell.work];
        let bytes = site.relations().iter().map(|relation| relation.bytes).sum::<u64>();
        self.sizes.insert((cell.server, work.workload), (bytes, work.scale));
    }

    /// The size of the tables of a cell in their starting state, in bytes, which is proportional to
    /// their scale; 0 if unknown.
    pub fn size(&self, cell: &CellPlan) -> u64 {
        let work = &self.design.works[cell.work];
        let known = self.sizes.get(&(cell.server, work.workload));
        known.map_or(0, |(bytes, scale)| bytes / u64::from((*scale).max(1)) * u64::from(work.scale))
    }

    /// Reads the catalogs for a work whose tables are ready, unless that was done.
    fn learn_catalog(&mut self, cell: &CellPlan, prepared: &Prepared) {
        let place = (cell.server, cell.work, prepared.room);
        let wanted = self.judging.is_some() && self.design.plan.observe().shows_rows();
        if wanted && !self.catalogs.contains_key(&place) {
            let work = &self.design.works[cell.work];
            let known = work.workload(self.design.seed(), &prepared.site.database).and_then(|workload| {
                catalog(&prepared.site, workload.mix.scripts().iter().map(|weighted| &weighted.script))
            });
            let catalog = match known {
                Ok(catalog) => catalog,
                Err(failure) => {
                    self.prevent(cell, format!("the server's catalogs can't be read: {failure}"));
                    None
                }
            };
            self.catalogs.insert(place, catalog);
        }
    }

    /// Decides how a cell's transactions are recorded, and prepares its scripts for it.
    pub(crate) fn recorded(
        &self,
        cell: &CellPlan,
        prepared: &Prepared,
        spec: &RunSpec,
        workload: &mut RunWorkload,
    ) -> Recorded {
        const NONE: &AsWritten = &AsWritten::none();
        let place = (cell.server, cell.work);
        let prevented = self.prevented.contains_key(&place);
        let catalog = self.catalogs.get(&(cell.server, cell.work, prepared.room)).filter(|_| !prevented);
        let as_written = self.as_written.get(&place).unwrap_or(NONE);
        let site = &prepared.site;
        let seen_by = catalog.and_then(Option::as_ref).map(|catalog| SeenBy { catalog, as_written, site });
        recorded(workload, spec, self.design.plan.observe(), seen_by)
    }

    /// Compares the plans of the statements that would be sent differently, unless that was done for
    /// these tables and settings.
    ///
    /// # Errors
    /// The server is gone.
    pub(crate) fn compare_plans(&mut self, cell: &CellPlan, prepared: &Prepared) -> Outcome {
        if !self.explained.insert((cell.server, cell.work, cell.session)) {
            return Ok(());
        }
        let work = &self.design.works[cell.work];
        let workload = work.workload(self.design.seed(), &prepared.site.database)?;
        let recorded = self.recorded(cell, prepared, &self.design.spec(cell), &mut workload.clone());
        let Recorded::Rows(seen) = recorded else { return Ok(()) };
        let values = self.values.entry(work.workload).or_default();
        let as_written = self.as_written.entry((cell.server, cell.work)).or_default();
        compare_plans(&prepared.site, &workload, &seen.forms, values, as_written)
    }

    /// From now on these statements of a work are sent as written, for this reason. Returns false if
    /// they already were.
    pub(crate) fn send_as_written(
        &mut self,
        cell: &CellPlan,
        site: &Site,
        texts: &[String],
        why: &str,
    ) -> bool {
        let as_written = self.as_written.entry((cell.server, cell.work)).or_default();
        let add = |text: &String| as_written.add(site, text, Dark::Refused { why: why.to_owned() });
        texts.iter().map(add).filter(|new| *new).count() > 0
    }

    /// From now on the statements of a work are sent as written, for this reason.
    pub(crate) fn prevent(&mut self, cell: &CellPlan, why: String) {
        self.prevented.insert((cell.server, cell.work), why);
    }

    /// Keeps tables for the next cell to be prepared, which must be the only one.
    pub fn keep(&mut self, prepared: Prepared) {
        self.kept = Some(prepared);
    }

    /// Decides how the transactions of a cell are recorded. Also returns its workload.
    pub(crate) fn enter(
        &self,
        cell: &CellPlan,
        number: u32,
        prepared: Prepared,
    ) -> Outcome<(Entrant, RunWorkload)> {
        let (design, work) = (self.design, &self.design.works[cell.work]);
        let mut workload = work.workload(design.seed(), &prepared.site.database)?;
        let spec = design.spec(cell);
        // Cells without a fault do the same as those with one.
        let attested = if design.has_faults() {
            leave_rows(&mut workload, &spec.retry, &prepared.site.database)?;
            Some(Attested::make(&prepared.site, work.sources.sets_commit())?)
        } else {
            None
        };
        let recorded = if attested.is_some() {
            // A server that has crashed may use the number of a transaction twice, by which rows
            // tell who wrote them.
            recorded(&mut workload, &spec, Observe::Annotations, None)
        } else {
            self.recorded(cell, &prepared, &spec, &mut workload)
        };
        design.ask_for_levels(cell, prepared.site.connector().place(), &mut workload.mix)?;
        let Prepared { site, ready, .. } = prepared;
        let judging = self.judging.filter(|_| !matches!(recorded, Recorded::Nothing));
        let history = judging.map(|judging| judging.file(&cell.file_name(design, number)));
        let history = history.transpose()?.flatten();
        Ok((Entrant { cell: *cell, site, ready, recorded, history, attested }, workload))
    }

    /// The measurement of a cell; `place` is its number among those that take turns.
    ///
    /// # Errors
    /// The user's conditions can't be read.
    pub(crate) fn measurement<'m>(&'m self, entrant: &'m Entrant, place: usize) -> Outcome<Measurement<'m>> {
        let (design, work) = (self.design, &self.design.works[entrant.cell.work]);
        let kept = matches!(work.tables, Tables::Kept(_));
        Ok(Measurement {
            site: &entrant.site,
            sources: &work.sources,
            level: Some(entrant.cell.level),
            mixed: design.mixed(&entrant.cell),
            strict: design.plan.is_strict(),
            warmup: (design.warmup, design.max_warmup),
            stop: design.stop,
            log: None,
            fresh_tables: !kept,
            invariants: match work.tables {
                Tables::Found => Invariants::Unavailable(
                    "nothing is written on a standby, and its tables change as it follows its primary",
                ),
                Tables::Own(_) | Tables::Kept(_) => Invariants::Checked { own_tables: true },
                Tables::Pgbench { .. } | Tables::Checked(_) => Invariants::Checked { own_tables: false },
            },
            conditions: if kept {
                Conditions::before(&design.conditions, entrant.site.connector())?
            } else {
                Conditions::holding(&design.conditions)
            },
            judging: self.judging,
            recorded: &entrant.recorded,
            history: entrant.history.clone(),
            faults: self.faults(entrant),
            readers: design.plan.readers() as usize,
            readers_wait: design.plan.waits_for_lsn(),
            background: entrant.cell.background,
            observer: self.observer(&entrant.cell).map(|observer| (observer, Part(place))),
            others: self.others(&entrant.cell),
            control: self.control,
        })
    }

    /// The clients of this machine, if there are others.
    fn share(&self, spec: &RunSpec) -> Option<ClientShare> {
        self.machines.map(|machines| machines.share(spec.clients))
    }

    /// The other machines that work for a cell.
    fn others(&self, cell: &CellPlan) -> Option<Others<'a>> {
        let machines = self.machines?;
        let (design, name) = (self.design, cell.name(self.design));
        Some(Others { machines, cell: design.place_of(cell), name })
    }

    /// What happens to the server of a cell during its measurement.
    fn faults<'m>(&'m self, entrant: &'m Entrant) -> Option<Faults<'m>> {
        let (attested, target) = (entrant.attested.as_ref()?, self.target(&entrant.cell));
        let planned = self.design.faults_of(&entrant.cell);
        // A pause leaves nothing behind.
        if planned.iter().any(|fault| outage(fault.kind) != Some(Outage::Pause)) {
            target.spend();
        }
        let victim = target.victim(self.design.plan.fault_command.clone());
        Some(Faults { planned, victim, attested })
    }

    /// The job of a measurement's clients, which records what they do.
    pub(crate) fn measured_job(
        &self,
        measurement: &Measurement<'_>,
        cell: &CellPlan,
        workload: RunWorkload,
    ) -> Outcome<Job> {
        // Rows that stay have the numbers of those who wrote them.
        let kept = !measurement.fresh_tables;
        let attempts_from = if kept { first_attempt() } else { RunSpec::default().attempts_from };
        let spec = RunSpec { attempts_from, ..self.design.spec(cell) };
        let spec = RunSpec { share: self.share(&spec), ..spec };
        measurement.job(self.job(measurement.site, spec, workload))
    }

    /// Prepares this machine's share of a measurement that rank 0 makes.
    ///
    /// # Errors
    /// The server refuses or is gone, or it shows something else here.
    pub fn enter_for(&self, open: &Open) -> Outcome<Entered> {
        let cells = self.design.cells();
        let cell = cells.get(open.cell).ok_or_else(|| Failure::setup("has no such cell"))?;
        let cell = CellPlan { rate: open.rate.or(cell.rate), ..*cell };
        let name = cell.name(self.design);
        if name != open.name {
            return Err(Failure::setup(format!(
                "would measure \"{name}\" where rank 0 measures \"{}\"",
                open.name
            )));
        }
        let (design, work, target) = (self.design, &self.design.works[cell.work], self.target(&cell));
        let site =
            target.site_of_another(open.schema.as_deref()).with_settings(&design.sessions[cell.session]);
        let mut workload = work.workload(open.seed, &site.database)?;
        let spec = RunSpec { attempts_from: open.attempts_from, seed: open.seed, ..design.spec(&cell) };
        let spec = RunSpec { share: self.share(&spec), ..spec };
        if design.has_faults() {
            leave_rows(&mut workload, &spec.retry, &site.database)?;
        }
        let recorded = match open.recorded {
            RecordedAs::Nothing => Recorded::Nothing,
            RecordedAs::Annotations => recorded(&mut workload, &spec, Observe::Annotations, None),
            RecordedAs::Rows => {
                let known = AsWritten::of_another(&open.as_written);
                recorded_at(&site, &mut workload, &spec, design.plan.observe(), Some(known))?
            }
        };
        design.ask_for_levels(&cell, site.connector().place(), &mut workload.mix)?;
        let job = self.job(&site, spec, workload);
        let readers = (design.plan.readers() as usize, design.plan.waits_for_lsn());
        let levels = (Some(cell.level), design.mixed(&cell), readers);
        Entered::new(open, job, site, &work.sources, levels, &recorded, self.control)
    }

    /// The result of a cell whose measurement is over.
    pub(crate) fn conclude(
        &self,
        entrant: Entrant,
        mut measured: Measured,
        judgement: Option<String>,
    ) -> MeasuredCell {
        let Entrant { cell, ready, recorded, site, .. } = entrant;
        measured.round.starting_state = ready.state;
        let mut notes = ready.notes;
        notes.append(&mut measured.notes);
        MeasuredCell {
            round: measured.round,
            effective: measured.effective,
            notes,
            judgement,
            lost: measured.lost,
            broken: measured.broken,
            observation: self.observation(&cell, &recorded, &site),
        }
    }

    /// A job of a cell's clients.
    pub(crate) fn job(&self, site: &Site, spec: RunSpec, workload: RunWorkload) -> Job {
        sessions::job(spec, workload, self.design.plan.retried(), &site.database, site.connector())
    }

    /// What is seen of a cell's statements.
    fn observation(&self, cell: &CellPlan, recorded: &Recorded, site: &Site) -> Option<Observation> {
        let work = &self.design.works[cell.work];
        let place = (cell.server, cell.work);
        let prevented = self.prevented.get(&place).cloned().or_else(|| match recorded {
            // Not a statement is left that shows rows.
            Recorded::Nothing => self.as_written.get(&place).and_then(AsWritten::first),
            Recorded::Rows(_) | Recorded::Annotations => None,
        });
        let (mut statements, carried, proved) = match recorded {
            Recorded::Rows(seen) => (seen.report(), seen.carried(), seen.proved.clone()),
            Recorded::Annotations | Recorded::Nothing => Default::default(),
        };
        for statement in &mut statements {
            statement.text = site.as_alone(&statement.text).into_owned();
        }
        let known = !statements.is_empty() || prevented.is_some();
        let strategy = work.strategy.clone();
        let workload = work.sources.name();
        known.then_some(Observation { workload, strategy, statements, prevented, carried, proved })
    }

    /// The server of a cell.
    pub fn target(&self, cell: &CellPlan) -> &'a Target {
        &self.targets[cell.server]
    }

    /// The observer of a cell's server.
    pub fn observer(&self, cell: &CellPlan) -> Option<&'a Observer> {
        self.observers.get(cell.server)
    }
}
