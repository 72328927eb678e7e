//! Whether a tool runs: agy's own permission rules, a hook's decision, and whether anybody can be asked.
//!
//! Reference section 1.3, rows `ask` and `allow`. Pure.

use crate::behaviour::{Behaviour, Mode};
use crate::reply::Decision;
use crate::script::Permission;

/// What becomes of a tool before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Run,
    /// The user is asked.
    Ask,
    /// It needs a question and nobody can be asked (headless, since 1.1.3).
    SoftDenied,
    /// A hook denies it, for this reason.
    Denied(String),
}

/// Decides about one tool.
#[must_use]
pub fn verdict(decision: &Decision, permission: Permission, behaviour: &Behaviour) -> Verdict {
    let asks = match decision {
        Decision::Deny(reason) => return Verdict::Denied(reason.clone()),
        Decision::DenyUnlessGranted if permission == Permission::Granted => false,
        Decision::DenyUnlessGranted => return Verdict::Denied("no prior grant".to_owned()),
        Decision::ForceAsk => true,
        Decision::Ask => permission != Permission::Granted,
        // In the terminal interface `allow` does not skip the question (1.1.2, 1.1.12, 1.2.6).
        Decision::Allow if behaviour.mode == Mode::Headless && behaviour.profile.allow_skips_headless_question() => {
            false
        }
        Decision::Allow | Decision::Neutral => permission == Permission::Asks,
    };
    match (asks, behaviour.mode) {
        (false, _) => Verdict::Run,
        (true, Mode::Interactive) => Verdict::Ask,
        (true, Mode::Headless) => Verdict::SoftDenied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    #[test]
    fn a_headless_run_without_hooks_asks_nobody() {
        use Permission::{Asks, AutoApproved, Granted};
        use Verdict::{Run, SoftDenied};
        let behaviour = Behaviour::default();
        let cases = [
            (Decision::Neutral, AutoApproved, Run),
            (Decision::Neutral, Granted, Run),
            (Decision::Neutral, Asks, SoftDenied),
            (Decision::Ask, AutoApproved, SoftDenied),
            (Decision::Ask, Granted, Run),
            (Decision::ForceAsk, Granted, SoftDenied),
            (Decision::DenyUnlessGranted, Granted, Run),
            (Decision::DenyUnlessGranted, AutoApproved, Verdict::Denied("no prior grant".to_owned())),
            (Decision::Deny("no".to_owned()), Granted, Verdict::Denied("no".to_owned())),
            (Decision::Allow, Asks, SoftDenied),
        ];
        for (decision, permission, expected) in cases {
            assert_eq!(verdict(&decision, permission, &behaviour), expected, "{decision:?} {permission:?}");
        }
    }

    #[test]
    fn allow_skipped_the_question_of_a_headless_run_until_1_2_7() {
        let mut behaviour = Behaviour { profile: Version::new(1, 1, 7), ..Behaviour::default() };
        assert_eq!(verdict(&Decision::Allow, Permission::Asks, &behaviour), Verdict::Run);
        behaviour.mode = Mode::Interactive;
        assert_eq!(verdict(&Decision::Allow, Permission::Asks, &behaviour), Verdict::Ask);
    }
}
