//! Watching a running command from outside: the endpoint of `--metrics`.
//!
//! Not here: the metrics and the endpoint themselves (`isobench_metrics`).

use isobench_comparison::{CellPlan, Design, Failure, Listener, Outcome, Phase, SoFar, Target};
use isobench_isolation::Level;
use isobench_metrics::{
    Attributes, CELL, Endpoint, LEVEL, Meter, NAMESPACE, PHASE, SYSTEM, WORKLOAD, Working,
};

use crate::options::MonitorOptions;
use crate::output::say;

/// What is open for those who watch. The endpoint is closed on drop.
pub struct Monitor {
    meter: Meter,
    endpoint: Option<Endpoint>,
}

impl Monitor {
    /// Opens what the options ask for, and says where.
    ///
    /// # Errors
    /// The address can't be bound.
    pub fn open(options: &MonitorOptions) -> Outcome<Monitor> {
        let meter = Meter::default();
        let open = |address| {
            Endpoint::open(address, &meter).map_err(|error| Failure::setup(format!("--metrics: {error}")))
        };
        let endpoint = options.metrics.map(open).transpose()?;
        if let Some(endpoint) = &endpoint {
            say(&format!("metrics of this run are at {}", endpoint.url()));
        }
        Ok(Monitor { meter, endpoint })
    }

    /// Follows measurements on these servers; `None` if nobody watches.
    pub fn follower(&self, targets: &[Target]) -> Option<Follower> {
        let server =
            |target: &Target| (target.database.product.system_name, target.database_name().to_owned());
        self.endpoint
            .is_some()
            .then(|| Follower { meter: self.meter.clone(), servers: targets.iter().map(server).collect() })
    }
}

/// Says that this machine isn't the one to be watched, if the options want it to be.
pub fn leave_to_rank_0(options: &MonitorOptions) {
    if options.metrics.is_some() {
        say("--metrics: rank 0 has the metrics of all machines; nothing is done about it here");
    }
}

/// Tells a meter what clients do.
pub struct Follower {
    meter: Meter,
    /// Product and database of each server.
    servers: Vec<(&'static str, String)>,
}

impl Follower {
    /// What the clients of a single run have done so far.
    pub fn see_run(&self, level: Option<Level>, workload: &str, clients: usize, so_far: &SoFar) {
        let level = level.map_or("default", Level::name);
        let plural = if clients == 1 { "" } else { "s" };
        let cell = format!("{level}, {clients} client{plural}");
        let attributes = self.attributes(0, (cell, level, workload.to_owned()), so_far.phase);
        self.meter.see(&attributes, Working { round: 1, clients }, &so_far.progress);
    }

    fn see(&self, design: &Design, cell: &CellPlan, round: u32, so_far: &SoFar) -> Attributes {
        let workload = design.works[cell.work].sources.name();
        let names = (cell.name(design), cell.level.name(), workload);
        let attributes = self.attributes(cell.server, names, so_far.phase);
        self.meter.see(&attributes, Working { round, clients: cell.clients }, &so_far.progress);
        attributes
    }

    fn attributes(
        &self,
        server: usize,
        (cell, level, workload): (String, &str, String),
        phase: Phase,
    ) -> Attributes {
        let (system, database) = self.servers.get(server).cloned().unwrap_or_default();
        let phase = match phase {
            Phase::WarmUp => "warmup",
            Phase::Measurement => "measurement",
        };
        vec![
            (SYSTEM, system.to_owned()),
            (NAMESPACE, database),
            (CELL, cell),
            (LEVEL, level.to_owned()),
            (WORKLOAD, workload),
            (PHASE, phase.to_owned()),
        ]
    }
}

impl Listener for Follower {
    fn shows_latencies(&self) -> bool {
        true
    }

    fn preparing(&mut self, _: &Design, _: &CellPlan, _: u32) {
        self.meter.only(&[]);
    }

    fn running(&self, design: &Design, cell: &CellPlan, round: u32, so_far: &SoFar, _: &[(String, u32)]) {
        let seen = self.see(design, cell, round, so_far);
        self.meter.only(&[seen]);
    }

    fn in_turns(
        &self,
        design: &Design,
        cells: &[CellPlan],
        round: u32,
        so_far: &[SoFar],
        _: &[(String, u32)],
    ) {
        let see = |(cell, so_far)| self.see(design, cell, round, so_far);
        let seen: Vec<Attributes> = cells.iter().zip(so_far).map(see).collect();
        self.meter.only(&seen);
    }

    fn finished(&mut self, _: &Design, _: &CellPlan, _: u32, _: Option<f64>, _: f64) {
        self.meter.only(&[]);
    }

    fn close(&self) {
        self.meter.only(&[]);
    }
}
