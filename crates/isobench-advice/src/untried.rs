//! Scripts that couldn't be tried against others: their levels rest on theory alone.

use std::collections::BTreeMap;

use crate::advice::Advice;

impl Advice {
    /// Notes the scripts that couldn't be tried, each with the reason.
    pub fn note_untried(&mut self, reasons: &BTreeMap<String, String>) {
        for transaction in &mut self.transactions {
            transaction.not_tried = reasons.get(&transaction.script).cloned();
        }
    }
}
