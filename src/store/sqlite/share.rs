//! Fair shares of a claim among its three classes (Q1).

/// What waits in the queue, reminders to sweep, cleanups to sweep.
pub(super) type Classes = [u64; 3];

/// Max-min fair shares of `limit`; who gets the odd one goes round with `turn`.
pub(super) fn shares(wanted: Classes, limit: u64, turn: i64) -> Classes {
    let mut share = [0; 3];
    let mut room = limit;
    while room > 0 {
        let hungry = (0..3).filter(|class| share[*class] < wanted[*class]).count();
        if hungry == 0 {
            break;
        }
        let each = (room / hungry as u64).max(1);
        for step in 1..=3 {
            let class = usize::try_from((turn + step).rem_euclid(3)).unwrap_or_default();
            let more = each.min(wanted[class] - share[class]).min(room);
            share[class] += more;
            room -= more;
        }
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_want_more_than_there_is_get_equal_parts() {
        assert_eq!(shares([100, 100, 100], 9, 0), [3, 3, 3]);
        assert_eq!(shares([100, 2, 100], 10, 0), [4, 2, 4]);
        assert_eq!(shares([1, 1, 1], 10, 0), [1, 1, 1]);
        assert_eq!(shares([0, 0, 5], 3, 0), [0, 0, 3]);
        assert_eq!(shares([5, 5, 5], 0, 0), [0, 0, 0]);
    }

    #[test]
    fn each_class_gets_the_single_one_within_three_turns() {
        let mut sum = [0; 3];
        for turn in 7..10 {
            let share = shares([9, 9, 9], 1, turn);
            (0..3).for_each(|class| sum[class] += share[class]);
        }
        assert_eq!(sum, [1, 1, 1]);
    }
}
