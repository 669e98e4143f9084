//! What a plan lets happen to the server while its clients work, and the standbys that it needs.
//!
//! Not here: doing it (`crate::fault`).

use std::path::Path;
use std::time::Duration;

use isobench_plan::{Fault, FaultFactor, FaultKind, Plan, StandbyMode};
use isobench_runner::Backoff;
use isobench_trust::untrusted_program;

use super::values::{distinct, wrong};
use crate::failure::{Failure, Outcome};

/// What happens in a cell, in the order of the plan; often nothing.
pub type FaultPlan = Vec<Fault>;

/// The delay between attempts to reconnect, unless the plan says otherwise.
const RECONNECT: &str = "fixed:10ms";

/// The most standbys of a server.
const MOST_STANDBYS: u32 = 8;

/// The standbys of the embedded servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standbys {
    /// How many each server has.
    pub number: usize,
    /// How they follow, as a factor; empty if there are none.
    pub modes: Vec<StandbyMode>,
}

/// Every combination of the faults, the last factor varying fastest; a single empty one without any.
///
/// # Errors
/// A fault is there twice, is to happen after the end, or the plan counts transactions.
pub fn fault_plans(plan: &Plan, time: Option<Duration>) -> Outcome<Vec<FaultPlan>> {
    let factors: &[FaultFactor] = plan.faults();
    for factor in factors {
        let texts: Vec<String> = factor.0.iter().map(|fault| format!("{fault:?}")).collect();
        distinct("fault", &texts)?;
    }
    for fault in factors.iter().flat_map(|factor| factor.0.iter().flatten()) {
        let Some(time) = time else {
            return Err(wrong(
                "fault",
                format!(
                    "{fault}: it happens at a time, but the plan counts transactions; give --time instead"
                ),
            ));
        };
        let ends = fault.at + fault.kind.lasts().unwrap_or(0.0);
        if ends >= time.as_secs_f64() {
            return Err(wrong(
                "fault",
                format!(
                    "{fault}: each cell is measured for {} s only; give a longer --time, with a second or more after \
                     the fault for the server to recover",
                    time.as_secs_f64()
                ),
            ));
        }
    }
    let with = |so_far: Vec<FaultPlan>, factor: &FaultFactor| {
        let each = |plan: &FaultPlan| {
            let one = |fault: &Option<Fault>| plan.iter().copied().chain(*fault).collect::<FaultPlan>();
            factor.0.iter().map(one).collect::<Vec<_>>()
        };
        so_far.iter().flat_map(each).collect()
    };
    Ok(factors.iter().fold(vec![FaultPlan::new()], with))
}

/// The faults of a cell as a value: "crash@1 + freeze:1@3".
pub fn fault_name(plan: &FaultPlan) -> String {
    let texts: Vec<String> = plan.iter().map(Fault::to_string).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(" + ") }
}

/// The standbys that a plan asks for, or needs.
///
/// # Errors
/// There are too many, none although they are to follow in some way, or a way is there twice.
pub fn standbys(plan: &Plan) -> Outcome<Standbys> {
    let needing = all(plan).find(|fault| fault.kind.needs_standby());
    let needed = needing.is_some() || !plan.standby().is_empty() || plan.readers() > 0;
    let number = plan.standbys.unwrap_or(u32::from(needed));
    distinct("standby", plan.standby())?;
    if number > MOST_STANDBYS {
        return Err(wrong("standbys", format!("{number}: at most {MOST_STANDBYS} are possible")));
    }
    if number == 0 && needed {
        let why = match (needing, plan.readers()) {
            (Some(fault), _) => format!("--fault {fault} needs one"),
            (None, 0) => "--standby says how they follow".to_owned(),
            (None, _) => "--readers have their sessions on one".to_owned(),
        };
        return Err(wrong("standbys", format!("0, but {why}")));
    }
    let modes = match plan.standby() {
        [] if number > 0 => vec![StandbyMode::Async],
        modes => modes.to_vec(),
    };
    Ok(Standbys { number: number as usize, modes })
}

/// The delays between attempts to reconnect, if clients do.
///
/// # Errors
/// It isn't a policy, or several.
pub fn reconnect(plan: &Plan) -> Outcome<Option<Backoff>> {
    let default = (!plan.faults().is_empty()).then_some(RECONNECT);
    let Some(text) = plan.reconnect.as_deref().or(default) else { return Ok(None) };
    match Backoff::list(&[text.to_owned()]) {
        Ok(policies) if policies.len() == 1 => Ok(policies.into_iter().next()),
        Ok(_) => Err(wrong("reconnect", "give one policy")),
        Err(error) => Err(wrong("reconnect", error)),
    }
}

/// All faults of the plan.
fn all(plan: &Plan) -> impl Iterator<Item = &Fault> {
    plan.faults().iter().flat_map(|factor| factor.0.iter().flatten())
}

/// True if clients are to reach the embedded servers by relays, which can be cut off.
pub fn are_on_the_way(plan: &Plan) -> bool {
    all(plan).any(|fault| fault.kind.is_on_the_way())
}

/// Checks whether faults go with what else the plan wants. `unlogged`: pgbench's tables are.
///
/// # Errors
/// They don't, or the user's program is missing or of no use.
pub fn check(plan: &Plan, unlogged: bool) -> Outcome {
    let why = if unlogged {
        "a crash empties unlogged tables, so nothing could be said of them; leave out --unlogged-tables"
    } else if plan.schema.is_some() {
        "every transaction leaves a row in a table of isobench's, which isn't made in a schema of yours; leave out \
         --schema"
    } else if plan.sweeps() {
        "a search for the highest rate (--sweep) needs a server to which nothing happens"
    } else {
        return command(plan);
    };
    if plan.faults().is_empty() { command(plan) } else { Err(wrong("fault", why)) }
}

/// Checks the user's program.
fn command(plan: &Plan) -> Outcome {
    let wanted = all(plan).any(|fault| fault.kind == FaultKind::Command);
    match (wanted, &plan.fault_command) {
        (true, None) => Err(wrong("fault", "command@S runs a program: name it by --fault-command PROGRAM")),
        (false, Some(_)) => Err(wrong("fault-command", "no fault runs it: say when, by --fault command@S")),
        (true, Some(program)) => match untrusted_program(Path::new(program)) {
            Some(why) => Err(wrong("fault-command", format!("\"{program}\": {why}"))),
            None => Ok(()),
        },
        (false, None) => Ok(()),
    }
}

/// Refuses a plan on a named server with faults that isobench itself brings about, or with standbys other
/// than the one that is named (`has_standby`).
///
/// # Errors
/// It has some.
pub fn for_embedded(plan: &Plan, has_standby: bool) -> Outcome {
    let given = [
        ("--fault", all(plan).any(|fault| fault.kind != FaultKind::Command)),
        ("--standbys", plan.standbys.is_some()),
        ("--standby", !plan.standby().is_empty()),
        ("--readers", plan.readers() > 0 && !has_standby),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::setup(format!(
            "{option}: nothing happens to a named server but what a program of yours does (--fault command@S \
             --fault-command PROGRAM), nor does it get standbys (--standby-server names one that there is); leave out \
             its name (-h, -p, -d, PGHOST …) to use embedded ones"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(faults: &[&str]) -> Plan {
        let fault = faults.iter().map(|text| text.parse().unwrap()).collect();
        Plan { fault: Some(fault), ..Plan::default() }
    }

    const TEN: Option<Duration> = Some(Duration::from_secs(10));

    #[test]
    fn commas_are_a_factor_and_repetition_adds_one() {
        let names = |faults: &[&str]| -> Vec<String> {
            fault_plans(&plan(faults), TEN).unwrap().iter().map(fault_name).collect()
        };
        assert_eq!(names(&[]), ["none"]);
        assert_eq!(names(&["crash@1,promote@2"]), ["crash@1", "promote@2"]);
        assert_eq!(names(&["none,crash@1", "freeze:1@3"]), ["freeze:1@3", "crash@1 + freeze:1@3"]);
    }

    #[test]
    fn faults_must_be_over_before_the_end() {
        for (faults, time, part) in [
            ("crash@10", TEN, "longer --time"),
            ("freeze:5@6", TEN, "longer --time"),
            ("crash@1", None, "counts transactions"),
            ("crash@1,crash@1", TEN, "twice"),
        ] {
            let message = fault_plans(&plan(&[faults]), time).unwrap_err().to_string();
            assert!(message.starts_with("--fault") && message.contains(part), "{message}");
        }
    }

    #[test]
    fn standbys_are_there_if_they_are_needed() {
        let of = |plan: Plan| standbys(&plan);
        assert_eq!(of(Plan::default()).unwrap(), Standbys::default());
        let one = Standbys { number: 1, modes: vec![StandbyMode::Async] };
        assert_eq!(of(plan(&["promote@1"])).unwrap(), one);
        assert_eq!(of(Plan { standbys: Some(1), ..Plan::default() }).unwrap(), one);
        let sync = Plan { standby: Some(vec![StandbyMode::Sync]), ..Plan::default() };
        assert_eq!(of(sync.clone()).unwrap().modes, [StandbyMode::Sync]);
        assert!(of(Plan { standbys: Some(0), ..sync }).is_err());
        assert!(of(Plan { standbys: Some(9), ..Plan::default() }).is_err());
        assert!(of(Plan { standbys: Some(0), ..plan(&["promote@1"]) }).is_err());
    }

    #[test]
    fn clients_reconnect_where_something_happens() {
        assert_eq!(reconnect(&Plan::default()).unwrap(), None);
        assert_eq!(reconnect(&plan(&["crash@1"])).unwrap().unwrap().to_string(), RECONNECT);
        let own = Plan { reconnect: Some("exponential".to_owned()), ..Plan::default() };
        assert!(reconnect(&own).unwrap().is_some());
        let several = Plan { reconnect: Some("none,fixed:1ms".to_owned()), ..Plan::default() };
        assert!(reconnect(&several).unwrap_err().to_string().starts_with("--reconnect"));
    }
}
