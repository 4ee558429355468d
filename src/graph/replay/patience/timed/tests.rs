use super::*;

const LATE: Duration = Duration::from_micros(5);

/// Makes a worker idle after a stolen task that kept it busy for the given time.
fn idle_after(patience: &mut Patience, busy: Duration) {
    patience.end();
    // A start in the future counts as no time at all.
    let late = Duration::from_secs(60);
    let begun = patience.taken.expect("it has just ended");
    patience.taken = Some(if busy.is_zero() { begun + late } else { begun - busy });
    patience.begin();
}

#[test]
fn who_found_nothing_worth_its_while_waits_longer_each_time() {
    let mut patience = Patience::new(LATE);
    patience.begin();
    assert!(patience.asks() && patience.has_asked(), "nothing speaks against it at first");
    let pauses: Vec<u128> = (0..9)
        .map(|_| {
            idle_after(&mut patience, Duration::ZERO);
            assert!(!patience.asks() && !patience.has_asked());
            patience.pause.as_nanos()
        })
        .collect();
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000, 32_000]);
    let known = patience.pause;
    patience.begin();
    assert_eq!(patience.pause, known, "it has taken nothing since");
    idle_after(&mut patience, WORTH);
    assert!(patience.pause.is_zero() && patience.asks() && patience.has_asked());
}

#[test]
fn who_gets_no_answer_asks_again_after_twice_the_time() {
    let mut patience = Patience::new(LATE);
    idle_after(&mut patience, Duration::ZERO);
    let mut asked = Vec::new();
    for nanos in (0..8000).step_by(100) {
        patience.waited = Duration::from_nanos(nanos);
        assert_eq!(patience.has_asked(), nanos >= 500);
        assert_eq!(patience.adopts(), nanos >= 5000);
        if patience.asks() {
            asked.push(nanos);
        }
    }
    assert_eq!(asked, [500, 1000, 2000, 4000]);
}

#[test]
fn waiting_takes_time_from_the_moment_it_begins() {
    let mut patience = Patience::new(LATE);
    patience.wait();
    let once = patience.waited;
    (0..1000).for_each(|_| patience.wait());
    assert!(once > Duration::ZERO && patience.waited > once);
    let before = patience.idle;
    patience.begin();
    assert!(patience.waited.is_zero() && patience.idle > before);
    patience.waited = BUSY;
    patience.wait();
    assert!(patience.waited < Duration::from_secs(10), "measured, not added up");
}
