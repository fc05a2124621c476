//! The known name that was most likely meant.

/// The candidate nearest to `name`, if one is near enough to be a slip of the hand.
pub(super) fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let distances = candidates.into_iter().map(|one| (strsim::damerau_levenshtein(name, one), one));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.chars().count() / 3).max(1)).then_some(nearest)
}

/// The candidate nearest to `name`, near or far: for where something must be named.
pub(super) fn nearest_of_all<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let alike = |one: &str| strsim::jaro_winkler(name, one);
    candidates.into_iter().max_by(|a, b| alike(a).total_cmp(&alike(b)))
}
