//! Instruction sets, detected once when the program runs. Loops are written once, as a [`Body`],
//! and compiled for each set; the compiler vectorises them.
//!
//! Results may depend on the instruction set (with fused multiply-add, a product is not rounded
//! before it is added) but never on where in a loop an element stands.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// A set of instructions, ordered from the least to the most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Isa {
    /// What every machine of the target has: SSE2, or NEON.
    Baseline,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors (F, BW, DQ and VL).
    Avx512,
}

impl Isa {
    /// Every set, the least first.
    pub const ALL: [Isa; 3] = [Isa::Baseline, Isa::Avx2, Isa::Avx512];

    /// The set that kernels use: the best one that the machine has, or less where the
    /// environment variable `SINGA_RS_ISA` says `baseline` or `avx2`.
    pub fn active() -> Isa {
        static ACTIVE: OnceLock<Isa> = OnceLock::new();
        *ACTIVE.get_or_init(|| Isa::wanted().min(Isa::best()))
    }

    /// Whether the machine can run it.
    pub fn is_available(self) -> bool {
        self <= Isa::best()
    }

    fn wanted() -> Isa {
        match std::env::var("SINGA_RS_ISA").as_deref() {
            Ok("baseline") => Isa::Baseline,
            Ok("avx2") => Isa::Avx2,
            Ok("avx512") | Err(_) => Isa::Avx512,
            Ok(other) => {
                log::warn!("SINGA_RS_ISA={other} is none of baseline, avx2, avx512: ignored");
                Isa::Avx512
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn best() -> Isa {
        use std::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("fma") && has!("f16c");
        let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        match (avx2, avx512) {
            (true, true) => Isa::Avx512,
            (true, false) => Isa::Avx2,
            _ => Isa::Baseline,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best() -> Isa {
        Isa::Baseline
    }
}

/// What code compiled for an instruction set may count on. It is a type so that the choice is
/// made at compile time.
pub trait Level: Copy + Send + Sync + 'static {
    /// Whether a fused multiply-add is one instruction.
    const FMA: bool;
}

/// [`Isa::Baseline`] as a type.
#[derive(Clone, Copy)]
pub struct Baseline;

/// [`Isa::Avx2`] and [`Isa::Avx512`] as a type.
#[derive(Clone, Copy)]
pub struct Fused;

impl Level for Baseline {
    const FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
}

impl Level for Fused {
    const FMA: bool = true;
}

/// Work to be compiled for each instruction set.
pub trait Body {
    /// What it answers.
    type Output;

    /// Does the work. Implementations, and all they call, must be `#[inline(always)]`: what is
    /// not inlined is compiled for the baseline.
    fn run<L: Level>(self) -> Self::Output;
}

/// Runs `body` as compiled for `isa`, which must be available.
#[inline]
pub fn run<B: Body>(isa: Isa, body: B) -> B::Output {
    debug_assert!(isa.is_available());
    match isa {
        Isa::Baseline => body.run::<Baseline>(),
        // SAFETY: the machine has the instructions: `Isa::active` and callers ask it first.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(body) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(body) },
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx2 | Isa::Avx512 => body.run::<Baseline>(),
    }
}

/// Which instruction sets code is compiled for, as a type, so that nothing else is compiled.
pub trait Reach: 'static {
    /// Runs `body` as compiled for `isa`, or for less.
    fn run<B: Body>(isa: Isa, body: B) -> B::Output;
}

/// Every instruction set.
pub struct Every;

/// The baseline alone.
pub struct Least;

impl Reach for Every {
    #[inline]
    fn run<B: Body>(isa: Isa, body: B) -> B::Output {
        run(isa, body)
    }
}

impl Reach for Least {
    #[inline]
    fn run<B: Body>(_isa: Isa, body: B) -> B::Output {
        body.run::<Baseline>()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<B: Body>(body: B) -> B::Output {
    body.run::<Fused>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<B: Body>(body: B) -> B::Output {
    body.run::<Fused>()
}
