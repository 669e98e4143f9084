//! Every pair of templates by theory: which can race at the levels at which they ran.

use std::collections::BTreeSet;

use isobench_isolation::Level;
use isobench_robustness::{Columns, Kind as Does, Objection, Operation, Place, Program, Struck, objections};

use crate::programs::Programs;
use crate::script::{Assume, root};
use crate::suspect::{Kind, Suspect};
use crate::template::{Template, is_write};
use crate::touched::{Touched, meet, touched, writes};

/// The levels, the weakest first.
const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// How often schedules of a pair are looked for again, without those that were found.
const ROUNDS: usize = 24;

/// Looks at pairs of templates.
pub(crate) struct Judge<'a> {
    templates: &'a [Template],
    programs: &'a Programs,
    touched: Vec<Touched>,
}

/// What was found of a pair.
pub(crate) enum Found {
    /// It can race at the levels at which it ran.
    Suspects(Vec<Suspect>),
    /// At read committed it could, at its levels it can't.
    Held,
    /// Nothing.
    Nothing,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(templates: &'a [Template], programs: &'a Programs) -> Judge<'a> {
        Judge { templates, programs, touched: touched(templates, programs) }
    }

    /// The pairs that have tables and columns in common which one of them changes.
    pub(crate) fn pairs(&self) -> Vec<[usize; 2]> {
        let candidates: Vec<usize> = (0..self.templates.len())
            .filter(|number| self.programs.unknown(*number).is_none() && self.touched[*number].statements > 0)
            .collect();
        let mut found = Vec::new();
        for (place, one) in candidates.iter().enumerate() {
            for other in &candidates[place..] {
                if self.overwrites(*one, *other) && self.can_split(*one)
                    || self.overwrites(*other, *one) && self.can_split(*other)
                {
                    found.push([*one, *other]);
                }
            }
        }
        found
    }

    /// A transaction of one statement has no moment between two.
    fn can_split(&self, template: usize) -> bool {
        self.touched[template].statements > 1
    }

    /// True if the second one changes what the first one reads.
    fn overwrites(&self, one: usize, other: usize) -> bool {
        let writes = &self.touched[other].writes;
        self.touched[one]
            .reads
            .iter()
            .any(|(table, reads)| writes.get(table).is_some_and(|own| meet(reads, own)))
    }

    /// What is found of a pair.
    pub(crate) fn pair(&self, one: usize, other: usize) -> Found {
        let own = [self.templates[one].level, self.templates[other].level];
        let mut suspects = self.suspects([one, other], own);
        let lower = own.iter().all(|level| *level > Level::ReadCommitted);
        if suspects.is_empty() {
            let held = lower && !self.suspects([one, other], [Level::ReadCommitted; 2]).is_empty();
            return if held { Found::Held } else { Found::Nothing };
        }
        let lowest = own.into_iter().min().unwrap_or(Level::ReadCommitted);
        let higher = LEVELS.into_iter().filter(|level| *level > lowest);
        let higher: Vec<(Level, Vec<Suspect>)> =
            higher.map(|level| (level, self.suspects([one, other], [level; 2]))).collect();
        for suspect in &mut suspects {
            let gone = |(_, all): &&(Level, Vec<Suspect>)| !all.iter().any(|known| alike(known, suspect));
            suspect.needed = higher.iter().find(gone).map(|(level, _)| *level);
        }
        // Who loses updates reads stale data as well.
        if let Some(gravest) = suspects.iter().map(|suspect| suspect.kind).min()
            && gravest < Kind::StaleRead
        {
            suspects.retain(|suspect| suspect.kind < Kind::StaleRead);
        }
        Found::Suspects(suspects)
    }

    /// The suspects of a pair at these levels, of each kind, table and columns one.
    fn suspects(&self, pair: [usize; 2], levels: [Level; 2]) -> Vec<Suspect> {
        let [one, other] = pair;
        let Some((first, second)) = self.programs.program(one).zip(self.programs.program(other)) else {
            return Vec::new();
        };
        let alone = one == other;
        let programs: Vec<Program> =
            if alone { vec![first.clone()] } else { vec![first.clone(), second.clone()] };
        let (levels, numbers) = if alone { (&levels[..1], &pair[..1]) } else { (&levels[..], &pair[..]) };
        let mut struck = Struck::new();
        let mut found: Vec<Suspect> = Vec::new();
        for _ in 0..ROUNDS {
            let before = struck.len();
            for objection in objections(&programs, levels, &struck) {
                struck.insert(objection.strike(&programs));
                let both = alone || objection.read.role.program != objection.overwrites.role.program;
                if !objection.alone || !both {
                    continue;
                }
                if let Some(suspect) = self.suspect(&objection, &programs, numbers)
                    && !found.iter().any(|known| alike(known, &suspect))
                {
                    found.push(suspect);
                }
            }
            if struck.len() == before {
                break;
            }
        }
        found
    }

    /// A schedule as a suspect, unless what was recorded speaks against it.
    fn suspect(&self, objection: &Objection, programs: &[Program], numbers: &[usize]) -> Option<Suspect> {
        let operation = |place: Place| {
            &programs[place.role.program].branches[place.role.branch].operations[place.operation]
        };
        let (read, overwrites) = (operation(objection.read), operation(objection.overwrites));
        let (back, by) = (operation(objection.back), operation(objection.by));
        let split = numbers[objection.read.role.program];
        let within = numbers[objection.overwrites.role.program];
        let steps = [self.programs.step(&read.at)?, self.programs.step(&back.at)?];
        let within_steps = [self.programs.step(&overwrites.at)?, self.programs.step(&by.at)?];
        if ![&read.table, &back.table].into_iter().all(|name| self.programs.is_table(name)) {
            return None;
        }
        if self.is_one_delete(split, steps[0], read, back)
            || self.is_guarded(split, steps[0], read, overwrites)
            || self.has_inserted(split, steps[0], read)
        {
            return None;
        }
        let inserts = back.kind == Does::Insert && back.table == read.table;
        if inserts && overwrites.kind != Does::Delete && self.is_refused(split, steps, &read.table) {
            return None;
        }
        // It has done so before it reads: nothing follows from what it reads.
        let earlier = objection.back.operation < objection.read.operation;
        let kind = match kind(read, back, by) {
            Kind::LostUpdate | Kind::Duplicate if earlier => Kind::WriteSkew,
            kind => kind,
        };
        let columns = match (&read.reads, &overwrites.writes) {
            _ if overwrites.kind != Does::Update => BTreeSet::new(),
            (Columns::These(reads), Columns::These(writes)) => reads.intersection(writes).cloned().collect(),
            (Columns::These(these), Columns::All) | (Columns::All, Columns::These(these)) => these.clone(),
            (Columns::All, Columns::All) => BTreeSet::new(),
        };
        // One statement reads at one moment, or nothing can come between.
        if read.at == back.at && (kind == Kind::StaleRead || self.programs.runs_code(&read.at)) {
            return None;
        }
        let (read_table, back_table) = (read.table.clone(), back.table.clone());
        Some(Suspect {
            kind,
            split,
            within,
            read_table,
            columns,
            back_table,
            steps,
            earlier,
            within_steps,
            needed: None,
        })
    }

    /// True if one DELETE reads and removes a row: the server looks again whether the row is still to be removed.
    fn is_one_delete(&self, split: usize, step: usize, read: &Operation, back: &Operation) -> bool {
        let own = &self.templates[split].statements[step].normal;
        let same = read.at == back.at && read.table == back.table;
        same && own.verb() == "delete" && !own.key.to_ascii_uppercase().contains("SELECT")
    }

    /// True if a read is that of the row for which `ON CONFLICT DO NOTHING` inserts none, and one was inserted each time.
    fn has_inserted(&self, split: usize, step: usize, read: &Operation) -> bool {
        let own = &self.templates[split].statements[step];
        let nothing = own.normal.key.to_ascii_uppercase().contains("DO NOTHING");
        own.finds && nothing && own.normal.verb() == "insert" && !writes(read)
    }

    /// True if a unique index keeps a second row out of those that were looked for: who inserts it fails.
    fn is_refused(&self, split: usize, [looks, inserts]: [usize; 2], table: &str) -> bool {
        let template = &self.templates[split];
        let values = |step: usize| {
            let own = &template.statements[step];
            (own.first_value..own.first_value + own.values).filter(|place| template.values[*place].times > 0)
        };
        let root = |place: usize| root(template, place, Assume::Recorded);
        let column = |place: usize| template.values[place].column.clone();
        let same = values(looks).filter(|place| template.values[*place].compared).filter_map(|place| {
            let again = |other: &usize| column(*other) == column(place) && root(*other) == root(place);
            values(inserts).any(|other| again(&other)).then(|| column(place)).flatten()
        });
        self.programs.are_unique(table, &same.collect())
    }

    /// True if the first transaction notices, or prevents, that what it read is changed: by its locks, or because
    /// it changes a row only if that is as it was read.
    fn is_guarded(&self, split: usize, step: usize, read: &Operation, overwrites: &Operation) -> bool {
        if read.newest || read.kind == Does::Vacant {
            return true;
        }
        let template = &self.templates[split];
        let key = &template.statements[step].normal.key;
        let words = key.to_ascii_uppercase();
        if words.contains("SKIP LOCKED") {
            return true;
        }
        let locks =
            ["FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE"].iter().any(|clause| words.contains(clause));
        // All rows that it found are locked, and none comes that it would have found.
        let found_again = match (overwrites.kind, &overwrites.writes) {
            (Does::Delete, _) => false,
            (Does::Update, Columns::These(writes)) => {
                read.known.iter().any(|(column, _)| writes.contains(column))
            }
            _ => true,
        };
        if locks && read.kind == Does::Search && !found_again {
            return true;
        }
        let changes = |column: &String| match &overwrites.writes {
            Columns::All => overwrites.kind != Does::Insert,
            Columns::These(these) => these.contains(column),
        };
        template.statements.iter().enumerate().skip(step + 1).any(|(_, later)| {
            let own = later.first_value..later.first_value + later.values;
            is_write(&later.normal.verb())
                && template.values[own]
                    .iter()
                    .any(|value| value.returned == Some(step) && value.column.as_ref().is_some_and(changes))
        })
    }
}

/// True for suspects that a reader takes for the same.
fn alike(one: &Suspect, other: &Suspect) -> bool {
    let of = |suspect: &Suspect| {
        (
            suspect.kind,
            suspect.split,
            suspect.read_table.clone(),
            suspect.columns.clone(),
            suspect.back_table.clone(),
        )
    };
    of(one) == of(other)
}

/// What goes wrong, by the operations of the transaction that goes on.
fn kind(read: &Operation, back: &Operation, by: &Operation) -> Kind {
    if !writes(back) {
        return Kind::StaleRead;
    }
    if back.table != read.table {
        return Kind::WriteSkew;
    }
    if back.kind == Does::Insert {
        return Kind::Duplicate;
    }
    let same_row = !read.key.is_empty() && read.key == back.key;
    if same_row || writes(by) { Kind::LostUpdate } else { Kind::WriteSkew }
}
