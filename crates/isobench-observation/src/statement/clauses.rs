//! Clauses that the parser knows and PostgreSQL doesn't have.

use sqlparser::ast::{Delete, Insert, Select, Update};

/// True if a SELECT has no clause of another product.
pub(super) fn is_plain_select(select: &Select) -> bool {
    select.optimizer_hints.is_empty()
        && select.select_modifiers.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none()
}

/// True if an INSERT has no clause of another product.
pub(super) fn is_plain_insert(insert: &Insert) -> bool {
    insert.optimizer_hints.is_empty()
        && insert.or.is_none()
        && !insert.ignore
        && !insert.overwrite
        && insert.assignments.is_empty()
        && insert.partitioned.is_none()
        && insert.after_columns.is_empty()
        && !insert.has_table_keyword
        && insert.output.is_none()
        && !insert.replace_into
        && insert.priority.is_none()
        && insert.insert_alias.is_none()
        && insert.settings.is_none()
        && insert.format_clause.is_none()
        && insert.multi_table_insert_type.is_none()
        && insert.multi_table_into_clauses.is_empty()
}

/// True if an UPDATE has no clause of another product, and no join in place of its table.
pub(super) fn is_plain_update(update: &Update) -> bool {
    update.optimizer_hints.is_empty()
        && update.output.is_none()
        && update.or.is_none()
        && update.order_by.is_empty()
        && update.limit.is_none()
        && update.table.joins.is_empty()
}

/// True if a DELETE has no clause of another product.
pub(super) fn is_plain_delete(delete: &Delete) -> bool {
    delete.optimizer_hints.is_empty()
        && delete.tables.is_empty()
        && delete.output.is_none()
        && delete.order_by.is_empty()
        && delete.limit.is_none()
}
