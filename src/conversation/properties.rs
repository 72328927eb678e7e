//! Properties of the reducer: whatever is folded, in whatever order, nothing panics, no span is lost, doubled or
//! orphaned, and the state may be stored and read back between any two events.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::event::{self, Content, Invocation, Stop, ToolStep, Wanted};
use crate::redact::{self, Allowed, DigestKey, Raw};
use crate::semconv;
use crate::span::Role;

const CONVERSATION: &str = "7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11";
const START_MS: u64 = 1_796_029_200_000;

/// Something that a conversation is told.
#[derive(Debug, Clone)]
enum Told {
    Event(Event<Raw>, Capture),
    Exit(Agent, Now),
    Overdue(Now, bool),
}

fn agent(pid: u32) -> Agent {
    Agent { pid, started_ns: 1, namespace: 1, marked: true }
}

/// With all content that an event of its kind could bring.
fn event(action: Action) -> Event<Raw> {
    let raw = |what: &str| Some(Raw::new(format!("\"{what} of {action:?}\"").into_bytes(), true));
    let content = Content {
        args: raw("args"),
        error: raw("error"),
        prompt: raw("prompt"),
        output: raw("output"),
        result: raw("result"),
    };
    let (model, surface) = (Some("m".into()), Some(Surface::Cli));
    let told = event::Told::from(content).boxed();
    Event { model, surface, told, ..Event::new(CONVERSATION.into(), action) }
}

fn allowed() -> Allowed {
    Allowed { content: Wanted::ALL, digest_key: Some(DigestKey::new([7; 32])) }
}

fn capture(at_ms: u64, skew_ms: i64, boot: &str, pid: Option<u32>, registration: u64) -> Capture {
    Capture {
        realtime_ns: (START_MS + at_ms).saturating_add_signed(skew_ms) * 1_000_000,
        boottime_ns: at_ms * 1_000_000,
        boot_id: boot.into(),
        agent: pid.map(agent),
        registration,
        traceparent: None,
    }
}

fn any_action() -> impl Strategy<Value = Action> {
    let call = || {
        (option::of(0..4i64), option::of(0..12i64)).prop_map(|(num, initial_steps)| Invocation { num, initial_steps })
    };
    let step = || {
        let tool = option::of(prop_oneof![Just("a".to_owned()), Just("b".to_owned())]);
        (option::weighted(0.9, 0..12i64), tool, any::<bool>()).prop_map(|(step, tool, failed)| ToolStep {
            step,
            tool,
            failed,
        })
    };
    let reason = option::of(prop_oneof![Just("NO_TOOL_CALL".to_owned()), Just("ERROR".to_owned())]);
    prop_oneof![
        1 => Just(Action::SessionStart),
        4 => call().prop_map(Action::PreInvocation),
        4 => call().prop_map(Action::PostInvocation),
        5 => step().prop_map(Action::PreToolUse),
        5 => step().prop_map(Action::PostToolUse),
        3 => (reason, option::of(0..3i64), option::of(any::<bool>()), any::<bool>()).prop_map(
            |(reason, execution_num, fully_idle, failed)| Action::Stop(Stop { reason, execution_num, fully_idle, failed })
        ),
    ]
}

/// Anything at any time, by any process, in any boot.
fn any_told() -> impl Strategy<Value = Told> {
    let at = prop_oneof![8 => 0..20_000u64, 1 => 0..200_000_000u64];
    let skew = prop_oneof![8 => Just(0i64), 2 => -10_000_000..10_000_000i64];
    let boot = prop_oneof![6 => Just("a"), 2 => Just("b"), 1 => Just("")];
    (at, skew, boot, option::of(2..5u32), 1..3u64, any_action(), 0..12u8, any::<bool>()).prop_map(
        |(at_ms, skew_ms, boot, pid, registration, action, what, live)| {
            let capture = capture(at_ms, skew_ms, boot, pid, registration);
            let now = Now {
                realtime_ns: capture.realtime_ns,
                boottime_ns: capture.boottime_ns,
                boot_id: capture.boot_id.clone(),
            };
            match what {
                0 => Told::Exit(agent(pid.unwrap_or(2)), now),
                1 => Told::Overdue(now, live),
                _ => Told::Event(event(action), capture),
            }
        },
    )
}

fn any_options() -> impl Strategy<Value = Options> {
    (0..4usize, 0..2usize).prop_map(|(policy, names)| Options {
        session_span: SessionSpan::ALL[policy],
        span_names: SpanNames::ALL[names],
        ..Options::default()
    })
}

fn tell(conversation: &mut Conversation, told: &Told, options: &Options) -> Vec<Output> {
    match told {
        Told::Event(event, capture) => conversation.apply(&redact::event(event.clone(), &allowed()), capture, options),
        Told::Exit(agent, now) => conversation.agent_exited(agent, now, options),
        Told::Overdue(now, live) => conversation.overdue(now, &|_| *live, options),
    }
}

/// The end of everything: the agents are gone and the idle time is over.
fn finish(conversation: &mut Conversation, options: &Options) -> Vec<Output> {
    let now = Now { realtime_ns: u64::MAX, boottime_ns: 0, boot_id: "last".into() };
    conversation.overdue(&now, &|_| false, options)
}

fn run(script: &[Told], options: &Options) -> (Conversation, Vec<Output>) {
    let mut conversation = Conversation::new(Origin::default());
    let outputs = script.iter().flat_map(|told| tell(&mut conversation, told, options)).collect();
    (conversation, outputs)
}

fn spans(outputs: &[Output]) -> Vec<&Span> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Span(span) => Some(span),
            Output::Session(_) | Output::Count(_) => None,
        })
        .collect()
}

fn roots(outputs: &[Output]) -> Vec<&Span> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Session(span) => Some(span),
            Output::Span(_) | Output::Count(_) => None,
        })
        .collect()
}

/// How many spans there are of each role and name.
fn census(outputs: &[Output]) -> BTreeMap<(Role, &str), usize> {
    let mut census = BTreeMap::new();
    for span in spans(outputs) {
        *census.entry((span.role, span.name.as_str())).or_default() += 1;
    }
    census
}

/// What agy does in one turn: per model call, how many tools, and whether they run at once.
type Plan = Vec<(u8, bool)>;

/// A session as agy runs it; every event a second after the one before.
fn session(turns: &[Plan]) -> Vec<Told> {
    let mut actions = vec![Action::SessionStart];
    let mut steps = 1;
    for turn in turns {
        for (num, (tools, at_once)) in turn.iter().enumerate() {
            let call = Invocation { num: i64::try_from(num).ok(), initial_steps: Some(steps) };
            let tool = |index: i64| ToolStep { step: Some(steps + index), tool: Some("a".into()), failed: false };
            actions.push(Action::PreInvocation(call));
            let tools = i64::from(*tools);
            if *at_once {
                actions.extend((1..=tools).map(|index| Action::PreToolUse(tool(index))));
                actions.extend((1..=tools).rev().map(|index| Action::PostToolUse(tool(index))));
            } else {
                let pair = |index| [Action::PreToolUse(tool(index)), Action::PostToolUse(tool(index))];
                actions.extend((1..=tools).flat_map(pair));
            }
            actions.push(Action::PostInvocation(call));
            steps += 1 + tools;
        }
        let reason = Some("NO_TOOL_CALL".to_owned());
        actions.push(Action::Stop(Stop { reason, execution_num: Some(0), fully_idle: Some(true), failed: false }));
        steps += 2;
    }
    let timed = actions.into_iter().zip(0u64..);
    timed.map(|(action, at)| Told::Event(event(action), capture(at * 1_000, 0, "a", Some(2), 1))).collect()
}

fn any_session() -> impl Strategy<Value = Vec<Told>> {
    vec(vec((0..4u8, any::<bool>()), 1..4), 1..4).prop_map(|turns| session(&turns))
}

/// The same event as reported by other hooks half a second later.
fn by_others(told: &Told) -> Option<Told> {
    let Told::Event(event, capture) = told else { return None };
    let mut capture = capture.clone();
    capture.registration = 2;
    capture.boottime_ns += 500_000_000;
    capture.realtime_ns += 500_000_000;
    Some(Told::Event(event.clone(), capture))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_folded_gives_sound_spans(script in vec(any_told(), 0..60), options in any_options()) {
        let (mut conversation, mut outputs) = run(&script, &options);
        outputs.extend(finish(&mut conversation, &options));
        prop_assert!(!conversation.is_open());
        prop_assert!(conversation.preview(&options).is_empty());

        let (spans, roots) = (spans(&outputs), roots(&outputs));
        let ids: BTreeSet<_> = spans.iter().map(|span| span.span_id).collect();
        prop_assert_eq!(ids.len(), spans.len(), "an id is given twice");
        let turns = spans.iter().filter(|span| span.role == Role::Turn).count();
        prop_assert_eq!(i64::try_from(turns).ok(), Some(conversation.turn_count()), "a turn is lost or doubled");
        let root_is_due = !conversation.id().is_empty() && options.session_span != SessionSpan::None;
        prop_assert_eq!(!roots.is_empty(), root_is_due);
        prop_assert!(roots.windows(2).all(|two| two[0].span_id == two[1].span_id && two[0].end_ns <= two[1].end_ns));
        prop_assert!(roots.len() <= 1 || options.session_span == SessionSpan::Update);
        let known: BTreeMap<_, _> = spans.iter().chain(roots.last()).map(|span| (span.span_id, *span)).collect();
        for span in spans.iter().chain(&roots) {
            prop_assert!(span.start_ns > 0 && span.end_ns >= span.start_ns, "{span:?}");
            let place = span.role.into();
            prop_assert!(span.attributes.keys().all(|key| semconv::allows(place, key)), "{span:?}");
            let Some(parent) = span.parent else {
                prop_assert_eq!(span.role == Role::Turn, options.session_span == SessionSpan::None);
                continue;
            };
            let parent = known.get(&parent);
            prop_assert!(parent.is_some(), "an orphan: {span:?}");
            let (parent, late) = (parent.unwrap(), span.attributes.contains_key(semconv::LATE));
            prop_assert!(span.start_ns >= parent.start_ns, "{span:?} begins before {parent:?}");
            let bounded = parent.role == Role::Turn || options.session_span == SessionSpan::Update;
            prop_assert!(!bounded || late || span.end_ns <= parent.end_ns, "{span:?} outlasts {parent:?}");
        }
    }

    #[test]
    fn the_state_can_be_stored_after_any_event(script in vec(any_told(), 0..40), options in any_options()) {
        let (_, expected) = run(&script, &options);
        let mut conversation = Conversation::new(Origin::default());
        let mut outputs = Vec::new();
        for told in &script {
            outputs.extend(tell(&mut conversation, told, &options));
            let text = serde_json::to_string(&conversation).unwrap();
            // A field that every captured text has, and nothing else.
            prop_assert_eq!(text.contains("\"truncated\":"), conversation.has_content());
            conversation = serde_json::from_str(&text).unwrap();
        }
        prop_assert_eq!(outputs, expected);
        finish(&mut conversation, &options);
        prop_assert!(!conversation.has_content(), "content outlives its spans");
    }

    #[test]
    fn nothing_is_out_before_the_root(script in vec(any_told(), 0..60), first in any::<bool>()) {
        let policy = if first { SessionSpan::First } else { SessionSpan::Update };
        let (_, outputs) = run(&script, &Options { session_span: policy, ..Options::default() });
        let first_span = outputs.iter().position(|output| matches!(output, Output::Span(_)));
        let first_root = outputs.iter().position(|output| matches!(output, Output::Session(_)));
        prop_assert!(first_span.is_none_or(|span| first_root.is_some_and(|root| root < span)));
    }

    #[test]
    fn a_deadline_is_when_something_ends(script in vec(any_told(), 0..30), at_ms in 0..100_000_000u64, live in any::<bool>()) {
        let options = Options::default();
        let (mut conversation, _) = run(&script, &options);
        let now = Now { realtime_ns: (START_MS + at_ms) * 1_000_000, boottime_ns: at_ms * 1_000_000, boot_id: "a".into() };
        let is_live = |_: &Agent| live;
        let deadline = conversation.next_deadline(&now, &is_live, &options);
        prop_assert_eq!(deadline.is_some(), conversation.is_open());
        let ended = !conversation.overdue(&now, &is_live, &options).is_empty();
        prop_assert_eq!(deadline.is_some_and(|left| left.is_zero()), ended);
        prop_assert!(!ended || !conversation.is_open());
    }

    #[test]
    fn a_second_registration_adds_no_span(script in any_session(), delays in vec(0..4usize, 64)) {
        let options = Options::default();
        let (_, expected) = run(&script, &options);
        // Each report of the other hooks comes up to three events later than the first one.
        let mut doubled: Vec<(usize, Told)> = script.iter().cloned().enumerate().map(|(at, told)| (at * 10, told)).collect();
        let others = script.iter().filter_map(by_others).enumerate();
        doubled.extend(others.map(|(at, told)| ((at + delays[at % delays.len()]) * 10 + 5, told)));
        doubled.sort_by_key(|(at, _)| *at);
        let doubled: Vec<Told> = doubled.into_iter().map(|(_, told)| told).collect();
        let (_, outputs) = run(&doubled, &options);
        prop_assert_eq!(spans(&outputs), spans(&expected));
    }

    #[test]
    fn neighbours_may_change_places(script in any_session(), at in any::<prop::sample::Index>()) {
        let options = Options::default();
        let (_, expected) = run(&script, &options);
        let mut swapped = script.clone();
        let at = at.index(script.len() - 1);
        swapped.swap(at, at + 1);
        let (mut conversation, mut outputs) = run(&swapped, &options);
        outputs.extend(finish(&mut conversation, &options));
        prop_assert_eq!(census(&outputs), census(&expected), "{:?}", &swapped[at..at + 2]);
    }

    #[test]
    fn a_lost_event_invents_nothing(script in any_session(), at in any::<prop::sample::Index>()) {
        let options = Options::default();
        let (_, expected) = run(&script, &options);
        let mut rest = script.clone();
        rest.remove(at.index(script.len()));
        let (mut conversation, mut outputs) = run(&rest, &options);
        outputs.extend(finish(&mut conversation, &options));
        let whole = census(&expected);
        for (kind, count) in census(&outputs) {
            prop_assert!(count <= whole.get(&kind).copied().unwrap_or_default(), "{kind:?}");
        }
    }
}

#[test]
fn a_long_conversation_stays_small() {
    let turns: Vec<Plan> = vec![vec![(3, true), (2, false)]; 400];
    let options = Options::default();
    let mut conversation = Conversation::new(Origin::default());
    for told in session(&turns) {
        // Every second tool end is lost, so that starts pile up.
        let lost = matches!(&told, Told::Event(event, _) if matches!(&event.action, Action::PostToolUse(step) if step.step.is_some_and(|step| step % 2 == 0)));
        if !lost {
            tell(&mut conversation, &told, &options);
        }
    }
    let size = serde_json::to_string(&conversation).unwrap().len();
    assert!(size < 128 * 1024, "the state has {size} bytes");
}
